"""One thread for linear algebra on matrices of few columns.

BLAS gives each product to all cores and waits for the last of them. With a dozen columns the waiting takes longer than
the product, and many times longer on a machine whose cores have something else to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]


@cache
def _controller() -> ThreadpoolController:
    """Found once: it looks through all libraries that are loaded, which takes some milliseconds."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, here and in whatever runs meanwhile."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
