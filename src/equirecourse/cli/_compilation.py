"""A line on a terminal while numba compiles, when nothing else would be seen for up to a minute."""

# mypy: disable-error-code="no-untyped-call"
# numba's events have no types.

from __future__ import annotations

import sys
from typing import Any

__all__ = ["announce_compilation"]

LINE = "Compiling the search for its first use; this can take a minute, and later runs do not wait for it."


def announce_compilation() -> None:
    """Say so on a terminal when numba begins to compile; what was compiled before is loaded without a word."""
    if not sys.stderr.isatty() or "numba" not in sys.modules:
        return
    from numba.core import event

    class Announcement(event.Listener):
        said = False

        def on_start(self, event: Any) -> None:  # noqa: ARG002 - numba's signature
            if not self.said:
                print(LINE, file=sys.stderr, flush=True)
            self.said = True

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcement())
