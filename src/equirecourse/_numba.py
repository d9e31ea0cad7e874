"""Compiled functions that are kept between runs where there is a place to keep them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

__all__ = ["njit"]


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function like ``numba.njit``, without the need for a folder to cache it in.

    Numba refuses to decorate a function with ``cache=True`` if it can write neither next to the function's file nor to
    the user's cache, as in a container with packages that are read-only and a user without a home. Here such a function
    is compiled in each process. A temporary folder would not help: a private one is gone with the process, and code
    that lies in a folder open to others is not ours to run.

    Parameters
    ----------
    cache : bool, default=False
        Keep what was compiled for later processes, if there is a place for it.
    **options
        Of ``numba.njit``.

    Returns
    -------
    callable
        The decorator.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if cache and _has_home():
            try:
                return numba.njit(cache=True, **options)(function)
            except RuntimeError:  # "cannot cache function ...: no locator available"
                pass
        return numba.njit(**options)(function)

    return decorate


def _has_home() -> bool:
    """Whether the user's cache is in a known place; if not, numba looks for a folder "~" where the process was started.

    The folder that a user has named for it takes precedence.
    """
    return "NUMBA_CACHE_DIR" in os.environ or Path(os.path.expanduser("~")).is_absolute()
