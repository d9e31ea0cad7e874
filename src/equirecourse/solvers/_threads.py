"""One thread of BLAS.

BLAS gives each product to all cores and waits for the last of them. With a dozen columns the waiting takes longer than
the product, and many times longer on a machine whose cores have something else to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]

_LIMITED: ContextVar[bool] = ContextVar("whether somebody further out has limited BLAS", default=False)


@cache
def _controller() -> ThreadpoolController:
    """Found once: it looks through all libraries that are loaded, which takes some milliseconds."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, here and in whatever runs meanwhile."""
    if _LIMITED.get():
        yield
        return
    libraries = _controller().select(user_api="blas").info()
    # The limit is one for the whole process: whoever finds it set, by another thread or for good, leaves it alone.
    alone = all(library["num_threads"] == 1 for library in libraries)
    token = _LIMITED.set(True)
    try:
        with nullcontext() if alone else _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _LIMITED.reset(token)
