"""What the transaction coordinator needs of its broker, beside the log of its topic."""

from collections.abc import Callable
from typing import Protocol

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant


class ProducerIdSource(Protocol):
    def next(self, done: Callable[[int | ErrorCode, Instant], list[Effect]], now: Instant) -> list[Effect]:
        """A producer id that nobody has: `done` is called with it, perhaps later, or with an error."""
        ...
