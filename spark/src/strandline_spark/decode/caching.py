"""Compiled functions, and where numba keeps them from one process to the next.

A cache is there to save time, so it is never why something fails: what cannot be read there (a file that a full disk or
a power cut has left short) is compiled anew and written again, and what cannot be written is left out. Without a place
for it at all (a read-only home), numba compiles anew in every process.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
import numba.core.caching

F = TypeVar("F", bound=Callable[..., Any])

Untyped: Any = numba.core.caching.FunctionCache


class Cache(Untyped):  # type: ignore[misc]  # numba has no types for it
    """Damage raises whatever pickle makes of it: any exception is one of the cache's own."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            self.begin_anew()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:
            self.begin_anew()

    def begin_anew(self) -> None:
        """Without its index nothing else of the cache is looked at."""
        with suppress(Exception):
            self.flush()


def compiled(function: F) -> F:
    found: Any = numba.njit(nogil=True)(function)
    with suppress(RuntimeError):  # no folder can be written
        found._cache = Cache(function)
    return cast(F, found)
