"""Something that is broken from the moment in which this is made, until `end`."""

from collections.abc import Callable
from types import TracebackType
from typing import Self


def nothing() -> None:
    """What a fault needs that is over at once."""


class Fault:
    """As a context manager it ends with the block."""

    def __init__(self, what: str, repair: Callable[[], None] = nothing) -> None:
        self.what = what
        self.repair = repair
        self.is_over = repair is nothing

    def __repr__(self) -> str:
        return f"<{self.what}{', over' if self.is_over else ''}>"

    def end(self) -> None:
        """Repair it, once."""
        if not self.is_over:
            self.is_over = True
            self.repair()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
