"""What answers that were not sent yet hold in memory, over all connections, and how large the next Fetch answer may be.

The driver and the node of one process share it. The driver reports what connections hold whose clients read slowly
(`hold`, `release`); the node cuts Fetch answers to `answer_max`, and reports large ones at once (`gave`), since it may
make many of them in one step, before the driver has seen the first.

Invariants:
  - `answer_max` is a quarter of what is free, so that no answer takes all of it, and later ones get smaller, not none
  - while nothing is held and no large answer was made, it is a quarter of the bound
  - at the bound an answer may have one batch, so that those who read get on; a quarter above it none
"""

from strandline.base.time import Instant

ANSWERS_BYTES_MAX = 256 * 1024 * 1024
NOTHING = -1
LARGE_BYTES = 1024 * 1024  # smaller answers are not counted one by one


class AnswerMemory:
    __slots__ = ("answer_max", "at", "bytes_max", "counted_from", "given", "held")

    def __init__(self, bytes_max: int = ANSWERS_BYTES_MAX) -> None:
        assert bytes_max > 0
        self.bytes_max = bytes_max
        self.held = 0  # bytes that wait for clients which read slowly, or for an earlier answer
        self.given = 0  # bytes of the large answers of the instant `at`
        self.at = Instant(0)
        self.counted_from = LARGE_BYTES  # answers of this size on are reported to `gave`
        self.answer_max = bytes_max // 4  # bytes of records in the next answer; 0: one batch; NOTHING: none

    def gave(self, size: int, now: Instant) -> None:
        """The node answers a Fetch with so many bytes. From the first large answer on it reports all of them, until one
        that is not large comes at a later instant: the driver has seen the earlier ones by then."""
        if now != self.at:
            self.at = now
            self.given = 0
        if size >= LARGE_BYTES or self.given:
            self.given += size
        self.counted_from = 0 if self.given else LARGE_BYTES
        self.changed()

    def hold(self, size: int) -> None:
        assert size >= 0
        self.held += size
        self.changed()

    def release(self, size: int) -> None:
        assert 0 <= size <= self.held, "what was held"
        self.held -= size
        self.changed()

    def changed(self) -> None:
        free = self.bytes_max - self.held - self.given
        self.answer_max = max(free, 0) // 4 if free >= -self.bytes_max // 4 else NOTHING
        assert NOTHING <= self.answer_max <= self.bytes_max // 4
