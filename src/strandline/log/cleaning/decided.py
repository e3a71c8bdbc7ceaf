"""What a cleaner does with transactions: aborted records go, and markers when nothing is left of what they ended.

A pass reads only below the last stable offset, so each transaction that it meets is decided. Records of an aborted one
are for nobody, and must not take the place of older records of their keys. A marker whose transaction has no record
left says nothing any more. It goes, like a tombstone, `delete.retention.ms` after the first pass that found it so: a
reader that has begun the transaction needs it (KIP-98, Kafka's CleanedTransactionMetadata).

Invariants:
  - a batch that is kept, even empty, keeps its transaction's marker. Without it a replica that reads the log anew would
    take the transaction for open, and the last stable offset would never pass it
  - an entry of the index of aborted transactions goes with its marker. A consumer skips what the producer wrote from
    the entry's first offset to the next abort marker, so it would skip later transactions, which were committed
"""

from bisect import bisect_right
from collections.abc import Sequence

from strandline.base.ports import Buffer
from strandline.log.indexes.aborted import AbortedTransaction
from strandline.wire.batch import BatchHeader, build, read_header
from strandline.wire.record import records


class Decided:
    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self.spans: dict[int, list[tuple[int, int]]] = {}  # of aborted transactions, by producer id
        for one in aborted:
            self.spans.setdefault(one.producer_id, []).append((one.first_offset, one.last_offset))
        for spans in self.spans.values():
            spans.sort()
        self.kept: set[int] = set()  # producers, of whose transaction that comes to its end next a batch is kept
        self.gone: set[int] = set()  # the offsets of markers that were not kept

    def is_aborted(self, header: BatchHeader) -> bool:
        if not header.is_transactional:
            return False
        spans = self.spans.get(header.producer_id, [])
        at = bisect_right(spans, header.base_offset, key=lambda span: span[0]) - 1
        return at >= 0 and header.base_offset <= spans[at][1]  # guard: aborted-record-takes-a-place

    def keeps(self, header: BatchHeader) -> None:
        """The batch stays, perhaps without records. Call in the order of the log."""
        if header.is_transactional:
            self.kept.add(header.producer_id)

    def marker(self, header: BatchHeader, batch: memoryview, now: int, horizon: int) -> Buffer | None:
        """The control batch, perhaps with a delete horizon; None if nothing needs it any more."""
        assert header.is_control
        assert header.base_offset not in self.gone, "each is asked about once"
        if not header.is_transactional or header.producer_id in self.kept:
            self.kept.discard(header.producer_id)
            return batch
        found = list(records(read_header(batch), batch))
        if not found or (header.has_delete_horizon and now >= header.base_timestamp):
            self.gone.add(header.base_offset)
            return None
        if header.has_delete_horizon:
            return batch
        return build(
            [record[1:] for record in found],
            base_offset=header.base_offset,
            leader_epoch=header.partition_leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            transactional=True,
            control=True,
            delete_horizon=horizon,
            offset_deltas=[record.offset - header.base_offset for record in found],
            last_offset_delta=header.last_offset_delta,
        )
