"""How long the command line takes to begin: CPU seconds of whole processes, against an import of scikit-learn.

python -m benchmarks startup [--quick]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

UNIT = "import sklearn.svm"
FLIPSET = ["flipset", "--dataset", "german", "--person", "4"]
AUDIT = ["audit", "--dataset", "german"]
# Arguments, whether numba's cache is empty, and how many imports of scikit-learn it may take.
COMMANDS = {
    "--help": (["--help"], False, "0.5"),
    "--version": (["--version"], False, "0.5"),
    "flipset, again": (FLIPSET, False, "2.5"),
    "flipset, first use": (FLIPSET, True, ""),
    "audit, again": (AUDIT, False, ""),
    "audit, first use": (AUDIT, True, ""),
}


def main(quick: bool = False) -> None:
    """Print the table."""
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as cache:
        for arguments in (FLIPSET, AUDIT):  # fill the cache, should they compile anything
            _cpu_seconds(["-m", "equirecourse.cli", *arguments], cache)
        for _ in range(1 if quick else 3):
            _keep(best, UNIT, _cpu_seconds(["-c", UNIT], cache))
            for name, (arguments, is_first, _) in COMMANDS.items():
                with tempfile.TemporaryDirectory() as empty:
                    seconds = _cpu_seconds(["-m", "equirecourse.cli", *arguments], empty if is_first else cache)
                _keep(best, name, seconds)
    print("CPU seconds of the command line for german credit, at first (with nothing compiled) and again")
    print(f"{'command':<20} {'seconds':>8} {'÷ ' + UNIT:>21} {'target: at most':>16}")
    for name, seconds in best.items():
        target = COMMANDS[name][2] if name in COMMANDS else ""
        print(f"{name:<20} {seconds:>7.2f}s {seconds / best[UNIT]:>21.2f} {target:>16}")


def _keep(best: dict[str, float], name: str, seconds: float) -> None:
    best[name] = min(best.get(name, seconds), seconds)


def _cpu_seconds(arguments: list[str], cache: str) -> float:
    """What a process of Python, its children included, takes of the processors."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime
