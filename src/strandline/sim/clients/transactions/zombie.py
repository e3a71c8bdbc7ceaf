"""A producer that stands still in the middle of a transaction, and goes on as if nothing had happened.

Meanwhile its transaction times out, or another one with its transactional id begins. Then nothing that it asks for may
have an effect, though it insists: it asks for a commit, too.
"""

from collections.abc import Generator, Sequence
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.sim.clients.client import Life
from strandline.sim.clients.transactions.transactional import FENCED, Transactional

E = ErrorCode
STILL_MS = (300, 4000)


class Zombie(Transactional):
    def transact(self) -> Life:
        began = self.begin()
        chosen = self.rng.sample(self.ats, self.rng.randrange(1, len(self.ats) + 1))
        error = yield from self.write(chosen, began)
        if self.sent_batches:
            commits = (error is E.NONE or error in FENCED) and self.rng.randrange(5) > 0
            yield from self.finish(began, error, commits=commits)

    def write(self, chosen: Sequence[TopicPartition], began: int) -> Generator[Any, Any, ErrorCode]:
        error = yield from super().write(chosen, began)
        if error is not E.NONE or self.is_stopped:
            return error
        yield self.pause(*STILL_MS)
        return (yield from super().write(chosen, self.stage.now_ms()))
