"""How much memory may be taken, so that a kernel matrix is refused before the machine begins to swap."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_bytes"]

_UNKNOWN = 4 * 2**30  # where a system does not say
_MEMINFO = Path("/proc/meminfo")
_LIMIT, _USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


def available_bytes() -> int:
    """Memory that is free or could be freed, in a container at most what is left of its limit."""
    return max(int(min(_of_machine(), _of_container())), 0)


def _of_machine() -> int:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return int(os.sysconf("SC_AVPHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not a Unix, or one that does not count
        return _UNKNOWN


def _of_container() -> float:
    try:
        return int(_LIMIT.read_text()) - int(_USED.read_text())
    except (OSError, ValueError):  # no container, or the word "max"
        return float("inf")
