"""Use an installed equirecourse as a stranger would, each command in a process of its own.

Run as ``PYTHON tools/smoke.py`` with the Python of the environment. Nothing of the checkout is looked at: the work is
done in a temporary folder.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = Path(sys.executable).with_name("equirecourse")
LOANS = ["--data", "loans.csv", "--target", "credit", "--group", "sex"]
# The command, a part of what it prints, and the files that it writes.
STEPS = [
    (["--help"], "Measure, explain and equalise", []),
    (["audit", "--help"], "--fail-above", []),
    (["datasets", "german", "--csv", "loans.csv"], "", ["loans.csv"]),
    (
        ["audit", *LOANS, "--max-people", "50", "--html", "audit.html", "--json", "audit.json"],
        "The report is in audit.html",
        ["audit.html", "audit.json"],
    ),
    (["equalize", *LOANS, "--html", "after.html", "--save", "fair.skops"], "placebo", ["after.html", "fair.skops"]),
    (["flipset", *LOANS, "--model", "fair.skops", "--person", "4"], "way 1, cost", []),
    (["replicate", "figure-toy", "--quick", "--out", "paper"], "Written to paper", ["paper/figures/toy_linear.png"]),
]


def run(arguments: list[str], printed: str, files: list[str], folder: str) -> None:
    """Run one command, and stop unless it ends well, prints what it should and writes what it should."""
    done = subprocess.run(
        [COMMAND, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    missing = [name for name in files if not (Path(folder) / name).is_file()]
    if done.returncode or done.stderr or printed not in done.stdout or missing:
        raise SystemExit(
            f"equirecourse {' '.join(arguments)}: exit code {done.returncode}, files not written {missing}, "
            f"to be printed {printed!r}\n{done.stdout}\n{done.stderr}"
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for arguments, printed, files in STEPS:
            run(arguments, printed, files, folder)
    print(f"{len(STEPS)} commands ran on Python {sys.version.split()[0]}")
