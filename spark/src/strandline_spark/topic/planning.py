"""Which offsets a batch reads, and in which pieces. Pure: numbers in, numbers out.

Invariants:
  - pieces of a range follow one another without gap or overlap, and none is empty
  - what a trigger may read is shared in proportion to what there is, and nobody who has something gets nothing
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import TypeVar

from msgspec.structs import replace

from strandline.base.value import Value

K = TypeVar("K")


class TopicRange(Value, frozen=True):
    """Records `start` ≤ offset < `end` of one partition."""

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int
    end_epoch: int = -1  # leader epoch of the record before `end`; −1: not known
    start_epoch: int = -1  # of the one before `start`

    @property
    def size(self) -> int:
        return self.end - self.start


def split(ranges: Sequence[TopicRange], min_partitions: int | None, max_records: int | None) -> list[TopicRange]:
    """Pieces of at most `max_records` offsets, at least `min_partitions` of them if there are as many offsets."""
    whole = [each for each in ranges if each.size > 0]
    counts = [1 if max_records is None else -(-each.size // max_records) for each in whole]
    heap = [(-each.size / count, at) for at, (each, count) in enumerate(zip(whole, counts, strict=True))]
    heapify(heap)
    for _ in range((min_partitions or 0) - sum(counts)):
        # The piece that is the longest now is cut once more: as even as whole pieces of a range can be.
        if not heap or heap[0][0] >= -1:
            break
        longest = heap[0][1]
        counts[longest] += 1
        heapreplace(heap, (-whole[longest].size / counts[longest], longest))
    return [piece for each, count in zip(whole, counts, strict=True) for piece in pieces(each, count)]


def pieces(whole: TopicRange, count: int) -> list[TopicRange]:
    bounds = [whole.start + whole.size * at // count for at in range(count + 1)]
    return [
        replace(whole, start=start, end=end, start_epoch=whole.start_epoch if start == whole.start else -1)
        for start, end in pairwise(bounds)
    ]


def share(waiting: Mapping[K, int], limit: int) -> dict[K, int]:
    """How much of `limit` offsets each gets of what waits there.

    Each with something gets at least one, so that none starves: with more of them than `limit`, that many in all, as in
    Spark's Kafka connector. Else the sum is exactly `limit`, or all there is.
    """
    total = sum(waiting.values())
    if total <= limit:
        return dict(waiting)
    given = {key: min(size, max(1, size * limit // total)) for key, size in waiting.items()}
    over = sum(given.values()) - limit
    keys = sorted(given, key=lambda key: -given[key])  # stable: the largest first, then in their order
    if over > 0:
        # The ones that were rounded up are paid for by the largest, in proportion to what is above one.
        spare = sum(size - 1 for size in given.values() if size > 1)
        for key in keys:
            if over <= 0 or spare <= 0:
                break
            own = given[key] - 1
            taken = min(own, -(-over * own // spare))
            given[key] -= taken
            over -= taken
            spare -= own
    elif over < 0:
        for key in sorted(given, key=lambda key: -(waiting[key] * limit % total)):
            if over == 0:
                break
            if waiting[key] * limit >= total:  # Those that got their one instead of nothing have had theirs.
                given[key] += 1
                over += 1
    return given
