"""Threads of our own in place of those of BLAS.

BLAS gives each product to all cores and waits for the last of them. With a dozen columns the waiting takes longer than
the product, and many times longer on a machine whose cores have something else to do. So BLAS is kept to one thread,
and where there is enough to do, parts of the people go to different threads, each for a whole pass.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

__all__ = ["in_parts", "one_blas_thread", "side_by_side"]

T = TypeVar("T")

_PARTS = 4
_OUTER: ContextVar[int | None] = ContextVar("threads that BLAS had before it was limited", default=None)
_ENOUGH = 2_000_000  # numbers in a matrix from which threads, which may have to be woken first, make up for it


@cache
def _controller() -> ThreadpoolController:
    """Found once: it looks through all libraries that are loaded, which takes some milliseconds."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[int]:
    """Keep BLAS to one thread, here and in whatever runs meanwhile; tell how many it would have used, at most four."""
    if (outer := _OUTER.get()) is not None:
        yield outer
        return
    libraries = _controller().select(user_api="blas").info()
    allowed = min(max((library["num_threads"] for library in libraries), default=1), _PARTS)
    # The limit is one for the whole process: whoever finds it set, by another thread or for good, leaves it alone.
    limit = nullcontext() if allowed == 1 else _controller().limit(limits=1, user_api="blas")
    token = _OUTER.set(allowed)
    try:
        with limit:
            yield allowed
    finally:
        _OUTER.reset(token)


def in_parts(n: int, d: int) -> list[slice]:
    """Rows of an n × d matrix for different threads.

    They depend on the matrix alone, so that sums over the parts are the same however many threads there are.
    """
    if n * d < _ENOUGH or n == 0:
        return [slice(0, n)]
    size = -(-n // _PARTS)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def side_by_side(work: Callable[[slice], T], parts: Sequence[slice], threads: int) -> list[T]:
    """What ``work`` returns for each part, in order; ``threads`` parts at a time."""
    if threads == 1 or len(parts) == 1:
        return [work(part) for part in parts]
    return list(_pool(os.getpid(), threads).map(work, parts))


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a forked process has none of these threads
    return ThreadPoolExecutor(threads, thread_name_prefix="equirecourse")
