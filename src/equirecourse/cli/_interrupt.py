"""Ctrl-C on the command line: one sentence, exit code 130, and no file half-written, whatever was going on.

Python's own answer is an exception in the middle of whatever runs. It is lost in destructors and callbacks of compiled
code, and breaks modules that are half loaded. The process ends here instead. This module loads nothing that takes time,
so that the handler stands before anything else does.
"""

from __future__ import annotations

import _thread  # what threading and signal add takes longer to load than all the rest
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

__all__ = ["SENTENCE", "end_on_interrupt", "ignore_interrupts"]

SENTENCE = "equirecourse: stopped; what was finished is kept, and no file is half-written."

_SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it

# Python calls a handler between two steps of the main thread, and a mixed-integer program is one step of up to half a
# minute. After this many seconds another thread does what the handler would.
_PATIENCE = 1.0

_ending = _thread.allocate_lock()
_wakeup_files: list[int] = []  # one at most: where Python writes the signals that it gets


def end_on_interrupt() -> None:
    """End the process with a sentence on an interrupt, from now on."""
    signal.signal(signal.SIGINT, _end)
    if os.name == "posix":  # elsewhere signals are written to sockets only
        signal.set_wakeup_fd(_wakeup_file(), warn_on_full_buffer=False)


def ignore_interrupts() -> None:
    """Let an interrupt pass: everything is written and said, and Python is about to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _wakeup_file() -> int:
    """Begin to listen for signals; where Python is to write them, at once and whatever the main thread does."""
    if not _wakeup_files:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        _thread.start_new_thread(_listen, (reading,))
        _wakeup_files.append(writing)
    return _wakeup_files[0]


def _listen(file: int) -> None:
    while os.read(file, 1)[0] != signal.SIGINT:
        pass
    time.sleep(_PATIENCE)
    with _ending:
        _leave()


def _end(*_: object) -> None:
    ignore_interrupts()
    with _ending:
        _leave()


def _leave() -> None:
    """End the process; whoever calls this keeps everybody else from it."""
    try:
        _remove_unfinished()
        before = f"{_SHOW_CURSOR}\n" if os.isatty(2) else ""
        os.write(2, f"{before}{SENTENCE}\n".encode())
        _end_workers()
        sys.stdout.flush()
    finally:
        os._exit(130)  # whatever went wrong: a stream is closed, or was being written to


def _remove_unfinished() -> None:
    unfinished = sys.modules.get("equirecourse._unfinished")  # nobody has written anything before it is loaded
    if unfinished is not None and hasattr(unfinished, "remove_unfinished"):
        unfinished.remove_unfinished()


def _end_workers() -> None:
    """End the processes of ``--jobs``: they would wait for somebody who is gone."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and hasattr(multiprocessing, "active_children"):
        for worker in multiprocessing.active_children():
            worker.terminate()
