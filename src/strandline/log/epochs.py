"""Where each leader epoch of a log begins (KIP-101), and what that says about the end of another log (KIP-279).

Invariant (executed by `check`): epochs and start offsets both strictly grow.
"""

from bisect import bisect_right
from typing import NamedTuple

from strandline.base.ids import OFFSET_MAX

UNDEFINED = (-1, -1)


class EpochStart(NamedTuple):
    epoch: int
    start_offset: int


class Epochs:
    def __init__(self, entries: list[EpochStart] | None = None) -> None:
        self.entries: list[EpochStart] = []
        for entry in entries or []:
            self.assign(*entry)

    @property
    def latest(self) -> int:
        return self.entries[-1].epoch if self.entries else -1

    def assign(self, epoch: int, start_offset: int) -> bool:
        """`epoch` begins at `start_offset`; False if that was known. Later epochs without records give way."""
        if epoch <= self.latest:
            return False
        while self.entries and self.entries[-1].start_offset >= start_offset:
            self.entries.pop()
        assert not self.entries or self.entries[-1].epoch < epoch
        self.entries.append(EpochStart(epoch, start_offset))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch that is not larger than `epoch`, and the exclusive end of it; (-1, -1) if there is none.

        An epoch before all of ours ended where ours begin, and its number is returned as asked (KIP-279).
        """
        if epoch < 0 or not self.entries:
            return UNDEFINED
        if epoch > self.latest:
            return UNDEFINED
        at = bisect_right(self.entries, epoch, key=lambda e: e.epoch)
        if at == 0:
            return epoch, self.entries[0].start_offset
        assert self.entries[at - 1].epoch <= epoch
        end = self.entries[at].start_offset if at < len(self.entries) else log_end_offset  # guard: epoch-end-off-by-one
        return self.entries[at - 1].epoch, end

    def epoch_at(self, offset: int) -> int:
        """The epoch in which the record at `offset` was written; -1 if it lies before all entries."""
        at = bisect_right(self.entries, offset, key=lambda e: e.start_offset)
        return self.entries[at - 1].epoch if at else -1

    def span_at(self, offset: int) -> tuple[int, int]:
        """As `epoch_at`, and where the next epoch begins."""
        at = bisect_right(self.entries, offset, key=lambda e: e.start_offset)
        epoch = self.entries[at - 1].epoch if at else -1
        return epoch, self.entries[at].start_offset if at < len(self.entries) else OFFSET_MAX + 1

    def last_written(self, log_end_offset: int) -> int:
        """The epoch of the last record before `log_end_offset`; -1 if there never was one.

        An epoch that a leader has only begun has no record: by that alone a log is no better than a longer one. Where
        retention has taken every record, the latest epoch that is known is that of the last one or later.
        """
        assert log_end_offset >= 0
        for entry in reversed(self.entries):
            if entry.start_offset < log_end_offset:
                return entry.epoch
        return self.latest if log_end_offset > 0 else -1

    def replace(self, entries: list[EpochStart]) -> None:
        self.entries = list(entries)
        self.check()

    def clear(self) -> None:
        self.entries = []

    def cut_end(self, offset: int) -> bool:
        """Forget epochs that begin at or after `offset`, also when the log itself ends before it (T33)."""
        kept = [e for e in self.entries if e.start_offset < offset]
        changed = len(kept) < len(self.entries)
        assert kept == self.entries[: len(kept)], "the first ones stay"
        self.entries = kept
        return changed

    def cut_start(self, offset: int) -> bool:
        """The log now starts at `offset`: the epoch in force there starts there too."""
        at = bisect_right(self.entries, offset, key=lambda e: e.start_offset)
        if at == 0 or self.entries[0].start_offset == offset:
            return False
        latest = self.latest
        self.entries[:at] = [EpochStart(self.entries[at - 1].epoch, offset)]
        assert self.latest == latest, "the log is as it was at its end"
        return True

    def check(self) -> None:
        for one, two in zip(self.entries, self.entries[1:], strict=False):
            assert one.epoch < two.epoch
            assert one.start_offset < two.start_offset
