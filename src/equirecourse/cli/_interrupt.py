"""Ctrl-C on the command line: one sentence, exit code 130, and no file half-written, whatever was going on.

Python's own answer is an exception in the middle of whatever runs. It is lost in destructors and callbacks of compiled
code, and breaks modules that are half loaded. The process ends here instead. This module loads nothing that takes time,
so that the handler stands before anything else does.
"""

from __future__ import annotations

import os
import signal
import sys

from equirecourse._unfinished import remove_unfinished

__all__ = ["SENTENCE", "end_on_interrupt", "ignore_interrupts"]

SENTENCE = "equirecourse: stopped; what was finished is kept, and no file is half-written."

_SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it


def end_on_interrupt() -> None:
    """End the process with a sentence on an interrupt, from now on."""
    signal.signal(signal.SIGINT, _end)


def ignore_interrupts() -> None:
    """Let an interrupt pass: everything is written and said, and Python is about to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(*_: object) -> None:
    try:
        ignore_interrupts()
        remove_unfinished()
        before = f"{_SHOW_CURSOR}\n" if os.isatty(2) else ""
        os.write(2, f"{before}{SENTENCE}\n".encode())
        _end_workers()
        # Whoever does not read what was printed so far can end this with a second interrupt.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.stdout.flush()
    finally:
        os._exit(130)  # whatever went wrong: a stream is closed, or was being written to


def _end_workers() -> None:
    """End the processes of ``--jobs``: they would wait for somebody who is gone."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and hasattr(multiprocessing, "active_children"):
        for worker in multiprocessing.active_children():
            worker.terminate()
