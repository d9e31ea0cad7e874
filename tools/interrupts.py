"""Interrupt a command at random moments, and count how that ends: ``python tools/interrupts.py [NUMBER]``.

Every run must end with the sentence and exit code 130, or with everything written if the interrupt came too late. An
interrupt before Python has loaded the first lines of the package ends as Python ends it, by the signal. Nothing may be
half-written, and no process may be left. With ``--group`` the interrupt goes to all processes, as that of a terminal.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from equirecourse.cli._interrupt import SENTENCE

ENTRY = [sys.executable, "-c", "from equirecourse.cli import main; main()"]


def start(folder: Path, command: str, jobs: int) -> subprocess.Popen[str]:
    """Begin a command that writes two files, in a session of its own."""
    arguments = [command, "--dataset", "german", "--json", "all.json", "--html", "all.html", "--jobs", str(jobs)]
    return subprocess.Popen(
        [*ENTRY, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def left_behind(folder: Path, session: int) -> str:
    """What should not be there: files that are not whole, or processes of the session; empty if all is well."""
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8")
        if path.name == "all.json":
            json.loads(text)
        elif path.name != "all.html" or not text.rstrip().endswith("</html>"):
            return f"{path.name} is left, or is not whole"
    for _ in range(50):  # those that were killed need a moment
        try:
            os.killpg(session, 0)
        except ProcessLookupError:
            return ""
        time.sleep(0.1)
    return "a process is left"


def outcome(process: subprocess.Popen[str], errors: str, folder: Path) -> str:
    """How a run ended, in words."""
    left = left_behind(folder, process.pid)
    if left:
        return f"WRONG: {left}"
    if process.returncode == 130 and errors == f"{SENTENCE}\n":
        return "the sentence and 130"
    if process.returncode == 0 and errors == "" and len(list(folder.iterdir())) == 2:
        return "finished before"
    if process.returncode == -signal.SIGINT and "site-packages" not in errors and "numpy" not in errors:
        return "by the signal, before the package was loaded"
    return f"WRONG: {process.returncode} {errors!r}"


def main() -> None:
    """Interrupt, count, and exit with 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", nargs="?", type=int, default=200)
    parser.add_argument("--command", choices=["audit", "equalize"], default="audit")
    parser.add_argument("--jobs", type=int, default=1, help="equalize has processes of its own with more than one")
    parser.add_argument("--group", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        begun = time.monotonic()
        process = start(Path(name), arguments.command, arguments.jobs)
        process.communicate()
        whole = time.monotonic() - begun
        assert process.returncode == 0
    counts: Counter[str] = Counter()
    delays = []
    for _ in range(arguments.number):
        moment = rng.uniform(0.0, 1.02 * whole)
        with tempfile.TemporaryDirectory() as name:
            process = start(Path(name), arguments.command, arguments.jobs)
            time.sleep(moment)
            if process.poll() is None:
                (os.killpg if arguments.group else os.kill)(process.pid, signal.SIGINT)
            sent = time.monotonic()
            _, errors = process.communicate(timeout=120)
            ended = outcome(process, errors, Path(name))
        counts[ended] += 1
        if ended.startswith("the sentence"):
            delays.append(time.monotonic() - sent)
        elif not ended.startswith("finished"):
            print(f"after {moment:.3f} s: {ended} {errors[-300:]!r}", flush=True)
    print(f"{arguments.number} interrupts of {arguments.command} --jobs {arguments.jobs} within {whole:.1f} s")
    for ended, count in counts.most_common():
        print(f"{count:5d}  {ended}")
    if delays:
        delays.sort()
        print(f"from interrupt to end: median {delays[len(delays) // 2]:.2f} s, at most {delays[-1]:.2f} s")
    sys.exit(any(ended.startswith("WRONG") for ended in counts))


if __name__ == "__main__":
    main()
