"""A loss ledger that is a list, and may refuse."""

from collections.abc import Iterable

from strandline.base.ports import DiskError
from strandline.metadata.records import LossEvent


class Noted:
    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.events: list[LossEvent] = []

    def note(self, events: Iterable[LossEvent]) -> None:
        if self.refuses:
            raise DiskError("the ledger cannot be written")
        self.events += events

    def ranges(self) -> list[tuple[int, int, int]]:
        return [(event.start, event.end, event.certainty) for event in self.events]
