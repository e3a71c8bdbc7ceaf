"""How old the record is that a reader reads next: looked at in the log, and remembered as long as it stays the next.

A reader may stand at the marker that ends a transaction, which nobody reads: then it is the record behind it.
"""

import time
from collections.abc import Mapping
from typing import NamedTuple

from strandline.client.cluster import Cluster
from strandline.client.errors import KafkaError
from strandline.wire.batch import BatchHeader, batches
from strandline.wire.record import timestamps
from strandline_spark.jobs.lag.samples import delay_of
from strandline_spark.jobs.lag.trouble import Trouble

PEEK_BYTES = 1  # a broker sends the first batch whole, however large
KNOWN_MAX = 10_000  # looks that are remembered
MARKERS_MAX = 8  # one behind the other, that are looked behind
Partition = tuple[str, int]


class Seen(NamedTuple):
    """What lies at an offset."""

    timestamp_ms: int | None  # None: a marker
    next_offset: int  # behind the batch


class Delays:
    def __init__(self, cluster: Cluster, isolation: int) -> None:
        self.cluster = cluster
        self.isolation = isolation
        self.known: dict[tuple[str, Partition, int], Seen] = {}  # by id of the topic: another one may have its name
        self.topic_ids: Mapping[str, str] = {}
        self.trouble = Trouble()

    def begin(self, topic_ids: Mapping[str, str], trouble: Trouble) -> None:
        """A new sample, with the topics as they are now."""
        self.topic_ids, self.trouble = topic_ids, trouble

    def of(self, where: Partition, position: int, end: int, now_ms: int) -> int | None:
        """In milliseconds; 0 if there is nothing to be read, None if it is unknown."""
        for _ in range(MARKERS_MAX + 1):
            if position >= end:
                return 0
            seen = self.seen(where, position)
            if seen is None:
                return None
            if seen.timestamp_ms is not None:
                return delay_of(now_ms, seen.timestamp_ms, end - position)
            position = seen.next_offset
        return None

    def seen(self, where: Partition, offset: int) -> Seen | None:
        key = (self.topic_ids.get(where[0], ""), where, offset)
        if key not in self.known:
            found = self.peek(where, offset)
            if found is None:
                return None  # it may be known the next time
            if len(self.known) >= KNOWN_MAX:
                self.known.clear()
            self.known[key] = found
        return self.known[key]

    def peek(self, where: Partition, offset: int) -> Seen | None:
        began = time.monotonic()
        try:
            fetched = self.cluster.fetch(
                *where,
                offset,
                patience_ms=self.trouble.patience_ms,
                max_bytes=PEEK_BYTES,
                wait_ms=0,
                isolation=self.isolation,
                topic_id=self.topic_ids.get(where[0]) or None,
            )
        except KafkaError:
            self.trouble.took(began)
            return None  # deleted meanwhile, or damaged, or its leader is gone: the lag is known all the same
        for header in batches(fetched.records):
            if header.next_offset > offset:
                stamp = None if header.is_control else stamp_in(header, fetched.records, offset)
                return Seen(stamp, header.next_offset)
        return None


def stamp_in(header: BatchHeader, records: memoryview, offset: int) -> int:
    """The timestamp of the record at `offset`; where compaction took records of the batch, its first timestamp."""
    if header.is_log_append_time:
        return header.max_timestamp
    stamps = timestamps(header, records) if header.record_count == header.last_offset_delta + 1 else None
    return stamps[max(0, offset - header.base_offset)] if stamps else header.base_timestamp
