"""Ctrl-C at any moment: the sentence, exit code 130, nothing half-written, nobody left."""

import os
import signal
import subprocess
import sys
import time

import pytest

from equirecourse.cli._interrupt import SENTENCE

AUDIT = ["audit", "--dataset", "german", "--json", "audit.json", "--html", "audit.html"]


def start(arguments, folder):
    return subprocess.Popen(
        [sys.executable, "-c", "from equirecourse.cli import main; print('begun', flush=True); main()", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """How long an audit takes that nobody interrupts."""
    begun = time.monotonic()
    process = start(AUDIT, tmp_path_factory.mktemp("whole"))
    _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    return time.monotonic() - begun


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9])
def test_an_audit_ends_with_the_sentence(share, whole, tmp_path):
    process = start(AUDIT, tmp_path)
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.05 + share * whole)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    files = sorted(path.name for path in tmp_path.iterdir())
    if process.returncode == 0:  # on a machine that is faster by now
        assert (errors, files) == ("", ["audit.html", "audit.json"])
    else:
        assert (process.returncode, errors) == (130, f"{SENTENCE}\n")
        assert set(files) <= {"audit.html", "audit.json"}


def run(code, folder):
    """Run code that interrupts itself, or is interrupted with all its processes once it says so."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"import os, signal\nfrom equirecourse.cli._interrupt import *\n{code}"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    if process.stdout.readline():
        os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, f"{SENTENCE}\n")
    return process


def test_a_file_that_is_being_written_is_removed(tmp_path):
    (tmp_path / "out").write_text("before")
    code = """
from pathlib import Path
from equirecourse._files import write_beside
end_on_interrupt()
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGINT)
write_beside("out", "after")
"""
    run(code, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_text() == "before"


def test_an_interrupt_while_a_module_loads_is_no_error_of_the_module(tmp_path):
    (tmp_path / "heavy.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(99): pass\n"
    )
    run("end_on_interrupt()\ntry:\n    import heavy\nexcept BaseException: pass", tmp_path)


def test_workers_end_with_the_command(tmp_path):
    code = """
from joblib import Parallel, delayed
import time
os.environ["PYTHONWARNINGS"] = "ignore"
end_on_interrupt()
def work(i):
    if i == 3:
        print("begun", flush=True)
    time.sleep(0.1 if i < 4 else 60)
Parallel(n_jobs=2, batch_size=1)(delayed(work)(i) for i in range(8))
"""
    process = run(code, tmp_path)
    for _ in range(100):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a process is left")


def test_a_long_step_of_compiled_code_is_not_waited_for(tmp_path):
    code = """
import numpy as np, sys
from scipy.optimize import Bounds, LinearConstraint, milp
end_on_interrupt()
sizes = np.random.default_rng(0).integers(1, 1000, (30, 60)).astype(float)
print("begun", flush=True)
milp(-np.ones(60), constraints=LinearConstraint(sizes, -np.inf, sizes.sum(axis=1) / 2), integrality=np.ones(60),
     bounds=Bounds(0, 1), options={"time_limit": 50})
"""
    begun = time.monotonic()
    run(code, tmp_path)
    assert time.monotonic() - begun < 30
