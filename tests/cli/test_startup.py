"""The command line loads what a command needs, and says so when the first use takes time."""

import subprocess
import sys

import numba
import pytest
import typer
from numba.core import event
from typer.testing import CliRunner

import equirecourse
from equirecourse.cli import _compilation
from equirecourse.cli._app import LazyCommand, app

COMMANDS = typer.main.get_command(app).commands


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["audti"]])
def test_no_library_is_loaded_to_say_what_there_is(arguments):
    code = (
        f"import sys; sys.argv = ['equirecourse', *{arguments!r}]\n"
        "from equirecourse.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    print([m for m in ('numpy', 'pandas', 'sklearn', 'numba', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "Traceback" not in done.stderr


def test_the_version():
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"equirecourse {equirecourse.__version__}\n")
    done = subprocess.run([sys.executable, "-m", "equirecourse", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"equirecourse {equirecourse.__version__}\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name):
    command = COMMANDS[name]
    assert isinstance(command, LazyCommand)
    first = command.load().help.split("\n\n")[0]
    assert " ".join(first.split()) == command.help


@pytest.fixture
def announced(monkeypatch, capsys):
    """Whether a function is announced when it is called, on a terminal or elsewhere."""
    listeners = event._registered["numba:compile"]
    before = list(listeners)

    def call(function, on_terminal=True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: on_terminal, raising=False)
        _compilation.announce_compilation()
        function(1)
        listeners[:] = before
        return capsys.readouterr().err

    yield call
    listeners[:] = before


def test_compilation_is_announced_on_a_terminal_once(announced):
    @numba.njit
    def inner(x):
        return x + 1

    @numba.njit
    def outer(x):
        return inner(x) + 1

    assert announced(outer) == f"{_compilation.LINE}\n"
    assert announced(outer) == ""  # it is there already


def test_nobody_is_told_where_nobody_looks(announced):
    assert announced(numba.njit(lambda x: x + 1), on_terminal=False) == ""


def test_a_command_announces_compilation(monkeypatch):
    called = []
    monkeypatch.setattr("equirecourse.cli._app.announce_compilation", lambda: called.append("numba" in sys.modules))
    CliRunner().invoke(app, ["audit", "--help"])
    assert called == [True]
