"""Transactions that read what others have committed: two that have each read from the other cannot both be (G1c)."""

from collections.abc import Generator, Sequence
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.sim.clients.client import Stage
from strandline.sim.clients.transactions.tap import Tap
from strandline.sim.clients.transactions.transactional import Transactional

E = ErrorCode


class Exchanging(Transactional):
    """It writes, reads what is new in all partitions, and writes again."""

    def __init__(self, stage: Stage, name: str, ats: Sequence[TopicPartition], *, pace_ms: int = 30) -> None:
        super().__init__(stage, name, f"t-{name}", ats, pace_ms=pace_ms)
        self.taps = [Tap(stage, f"{name}-{at}", at) for at in ats]
        self.places = dict.fromkeys(ats, 0)

    def write(self, chosen: Sequence[TopicPartition], began: int) -> Generator[Any, Any, ErrorCode]:
        error = yield from super().write(chosen, began)
        if error is not E.NONE:
            return error
        for tap in self.taps:
            found = yield from tap.poll(self.places[tap.at])
            if found is not None:
                self.reads += found[0]
                self.places[tap.at] = found[1]
        return (yield from super().write(chosen, self.stage.now_ms()))
