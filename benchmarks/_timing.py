"""Times worth comparing: taken in turns in one process, after a warm-up, the minimum of several."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def seconds(calls: dict[str, Callable[[], Any]], repeats: int = 3) -> dict[str, float]:
    """Smallest time of each call. The calls take turns, so that a busy moment of the machine meets all of them."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
