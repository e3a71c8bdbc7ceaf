"""The transactions of one log that are not over for its readers, and the last stable offset that follows from them.

A transaction is open from its first batch to its marker. Its marker decides it for readers when the marker is
committed: until then a truncation may take it, and another decision follow.

Invariants (executed by `check`): open transactions, and those whose markers wait, are in the order of their first
offsets, or of their markers.
"""

from strandline.base.value import Value


class Ended(Value, frozen=True):
    """A transaction that a marker at `last_offset` has ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class Transactions:
    def __init__(self) -> None:
        self.open: dict[int, int] = {}  # the first offset, by producer id; in the order of offsets
        self.ended: list[Ended] = []  # whose markers may not be committed, in the order of markers
        self.are_used = False  # was there ever one? Logs without need not be looked at

    def is_open(self, producer_id: int) -> bool:
        return producer_id in self.open

    def begin(self, producer_id: int, offset: int) -> None:
        """A transactional batch at `offset`: the first of its transaction, or another one."""
        self.open.setdefault(producer_id, offset)
        self.are_used = True

    def end(self, producer_id: int, offset: int, *, is_aborted: bool) -> Ended | None:
        """A marker at `offset`. None if the producer has no transaction open here."""
        first = self.open.pop(producer_id, None)
        last = self.ended[-1].last_offset if self.ended else -1
        if first is None or not max(first, last) < offset:
            return None  # or a base offset has rotted, which no checksum covers: a repair reads the log anew
        ended = Ended(producer_id, first, offset, is_aborted)
        self.ended.append(ended)
        return ended

    @property
    def first_open(self) -> int | None:
        """Where the earliest open transaction begins."""
        return next(iter(self.open.values()), None)

    def stable_end(self, high_watermark: int) -> int:
        """The last stable offset (exclusive, despite its name): below it every transaction is decided, and the decision
        is committed. `high_watermark` never falls: markers below it are waited for no longer."""
        if not self.ended and not self.open:
            return high_watermark
        self.committed(high_watermark)
        bounds = [high_watermark, *(one.first_offset for one in self.ended)]  # guard: uncommitted-marker-decides
        if self.open:
            bounds.append(next(iter(self.open.values())))
        return min(bounds)

    def committed(self, high_watermark: int) -> None:
        """Nothing waits for the markers below it any longer."""
        if self.ended and self.ended[0].last_offset < high_watermark:
            self.ended = [one for one in self.ended if one.last_offset >= high_watermark]

    def sort(self) -> None:
        """After they were read in another order than that of the log."""
        self.open = dict(sorted(self.open.items(), key=lambda row: row[1]))

    def check(self) -> None:
        firsts = list(self.open.values())
        assert firsts == sorted(set(firsts)), "open transactions are out of order"
        markers = [one.last_offset for one in self.ended]
        assert markers == sorted(set(markers)), "markers are out of order"
        assert all(one.first_offset < one.last_offset for one in self.ended), "a marker comes behind its transaction"
        assert self.are_used or not (self.open or self.ended)
