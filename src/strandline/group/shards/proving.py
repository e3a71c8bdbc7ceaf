"""Which of a group's records in the log are committed: an answer that depends on them waits for that.

The memory says what the leader's log says. So a heartbeat may find a state that is not committed yet, and that another
leader would not have.
"""

from collections.abc import Callable

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode

Then = Callable[[ErrorCode], list[Effect]]


class Proof:
    """Writes have numbers, from 1, in the log's order. If one is committed, so are all before it."""

    def __init__(self) -> None:
        self.written = 0
        self.proven = 0
        self.under_way: set[int] = set()
        self.waiting: list[tuple[int, Then]] = []  # with the write that each waits for

    @property
    def is_complete(self) -> bool:
        return self.proven == self.written

    @property
    def is_in_doubt(self) -> bool:
        """The last write is in the log, and nobody will report when it is committed. A later one would."""
        return not self.is_complete and self.written not in self.under_way

    def begin(self) -> int:
        self.written += 1
        self.under_way.add(self.written)
        return self.written

    def take_back(self, number: int) -> None:
        """It is not in the log."""
        assert number == self.written, "the last one"
        self.under_way.remove(number)
        self.written -= 1
        assert self.proven <= self.written, "what was not written is not committed"

    def wait(self, then: Then) -> None:
        assert not self.is_complete and not self.is_in_doubt
        self.waiting.append((self.written, then))

    def end(self, number: int, error: ErrorCode) -> list[Effect]:
        """The write is committed, or there will be no report of that."""
        self.under_way.remove(number)
        if error is ErrorCode.NONE:
            self.proven = max(self.proven, number)
        ended = [then for waits_for, then in self.waiting if waits_for <= number]
        self.waiting = [(waits_for, then) for waits_for, then in self.waiting if waits_for > number]
        return [effect for then in ended for effect in then(error)]

    def check(self) -> None:
        assert 0 <= self.proven <= self.written
        assert all(0 < number <= self.written for number in self.under_way)
        assert all(waits_for in self.under_way for waits_for, _ in self.waiting), "each is answered"
