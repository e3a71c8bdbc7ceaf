"""Batches of idempotent producers that this broker has refused, and that must come before those behind them.

A client with several batches in flight takes the success of a later one for the success of all before it: librdkafka
then reports a batch as delivered, without an offset, that was refused, and does not send it again. That is sound where
the log knows the producer, since it takes only the sequence that follows. A log that does not know the producer would
take any sequence (KIP-360: it may have been forgotten). So if the first batch meets a broker that does not lead yet, or
has too few in sync, and the second one a broker that may append, the first one would be lost, and acknowledged.

Invariants:
  - it is consulted only where the log does not know the producer, and then refuses what is behind a refused batch, as a
    log that knew the producer would
  - at most ROWS_MAX are remembered, each for SPAN_MS: what was sent before a refusal was heard of arrives by then
"""

from typing import Any

from strandline.base.ids import Uuid
from strandline.base.time import Instant
from strandline.log.log import Log
from strandline.wire.batch import SEQUENCE_MAX, BatchHeader, read_header, why_no_batch

ROWS_MAX = 1_000
SPAN_MS = 60_000
NAME_MAX = 249  # no topic has a longer one
Where = tuple[Uuid | str, int]  # the topic as the request calls it, and the partition


class Awaited:
    def __init__(self) -> None:
        # By partition, producer id and epoch: the sequence, and until when it is awaited. The oldest come first.
        self.rows: dict[tuple[Where, int, int], tuple[int, Instant]] = {}

    def refused(self, where: Where, records: Any, now: Instant) -> None:
        """For a reason that may pass: the producer sends it again."""
        assert len(self.rows) <= ROWS_MAX
        header = header_of(records)
        if header is None or len(where[0]) > NAME_MAX:
            return
        key = (where, header.producer_id, header.producer_epoch)
        known = self.rows.get(key)
        if known is not None and now <= known[1] and is_behind(header.base_sequence, known[0]):
            return
        self.rows.pop(key, None)
        self.rows[key] = (header.base_sequence, Instant(now + SPAN_MS))
        while len(self.rows) > ROWS_MAX:
            del self.rows[next(iter(self.rows))]
        assert key in self.rows

    def is_skipped(self, where: Where, log: Log, records: Any, now: Instant) -> bool:
        """Would this batch come before one that was refused, without which it means something else?"""
        header = header_of(records)
        if header is None:
            return False
        assert header.producer_id >= 0
        key = (where, header.producer_id, header.producer_epoch)
        row = self.rows.get(key)
        if row is None:
            return False
        sequence, until = row
        if now > until or header.producer_id in log.producers.known:
            del self.rows[key]
            return False
        return is_behind(header.base_sequence, sequence)


def header_of(records: Any) -> BatchHeader | None:
    if records is None or why_no_batch(records, 0) is not None:
        return None
    header = read_header(records)
    return header if header.producer_id >= 0 else None


def is_behind(sequence: int, other: int) -> bool:
    """Sequences count from 0 to the largest, and begin again: the nearer way decides."""
    return 0 < (sequence - other) & SEQUENCE_MAX <= SEQUENCE_MAX // 2
