"""The command line: each command parses, calls the library and prints."""

from equirecourse.cli._app import app, main

__all__ = ["app", "main"]
