"""What a cleaner does with transactions: aborted records go, and markers when nothing is left of what they ended.

A pass reads only below the last stable offset, so each transaction that it meets is decided. Records of an aborted one
are for nobody, and must not take the place of older records of their keys. A marker whose transaction has no record
left says nothing any more. It goes, like a tombstone, `delete.retention.ms` after the first pass that found it so: a
reader that has begun the transaction needs it (KIP-98, Kafka's CleanedTransactionMetadata).
"""

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
        self.kept: set[int] = set()  # producers, of whose transaction that comes to its end next a record is kept

    def is_aborted(self, header: BatchHeader) -> bool:
        if not header.is_transactional:
            return False
        spans = self.spans.get(header.producer_id, ())
        return any(first <= header.base_offset <= last for first, last in spans)

    def keeps(self, header: BatchHeader) -> None:
        """Records of this batch stay. Call in the order of the log."""
        if header.is_transactional:
            self.kept.add(header.producer_id)

    def marker(self, header: BatchHeader, batch: memoryview, now: int, horizon: int) -> Buffer | None:
        """The control batch, perhaps with a delete horizon; None if nothing needs it any more."""
        assert header.is_control
        if not header.is_transactional or header.producer_id in self.kept:
            self.kept.discard(header.producer_id)
            return batch
        if header.has_delete_horizon:
            return batch if now < header.base_timestamp else None
        found = list(records(read_header(batch), batch))
        if not found:
            return batch  # an empty one says where the producer stands
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
