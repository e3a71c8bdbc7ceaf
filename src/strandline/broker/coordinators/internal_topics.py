"""The partitions of internal topics as coordinators want them, on top of the replicas."""

from collections.abc import Iterable, Iterator

from strandline.base.effects import Effect
from strandline.base.ids import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTION_TOPIC, LeaderEpoch
from strandline.base.ports import Buffer
from strandline.base.time import Instant
from strandline.coordination.internal_log import Done, Replayed
from strandline.log.reading import Read
from strandline.log.refusals import Refused
from strandline.replica.hosting.leader import Leader
from strandline.replica.replicas import Replicas
from strandline.wire.batch import BatchHeader, batches, why_invalid
from strandline.wire.compress import Corrupt
from strandline.wire.control import EndTxnMarker, decode_control
from strandline.wire.record import records

READ_BYTES = 1 << 20
NO_TIMEOUT_MS = 1 << 40


class InternalTopics:
    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.unreadable = 0  # batches that were skipped

    def append_internal(
        self,
        topic: str,
        partition: int,
        batch: bytearray,
        now: Instant,
        done: Done,
        *,
        transaction: str = "",
        adds: bool = False,
    ) -> list[Effect]:
        assert topic in INTERNAL_TOPICS, "clients write the others"
        assert not transaction or topic == OFFSETS_TOPIC, "a transaction has offsets, and no other record of ours"
        # What becomes of a transaction's record must be known: its coordinator waits for it, however long that takes.
        timeout_ms = NO_TIMEOUT_MS if topic == TRANSACTION_TOPIC else None
        return self.replicas.append_internal(
            topic, partition, batch, now, done, timeout_ms, transaction=transaction, adds=adds
        )

    def leads(self, topic: str, partition: int) -> LeaderEpoch | None:
        return self.replicas.leads(topic, partition)

    def is_whole(self, topic: str, partition: int, now: Instant) -> bool:
        hosted = self.replicas.host.partitions.named(topic, partition)
        return hosted is None or self.replicas.scrubber.is_whole(hosted, now)

    def is_committed(self, topic: str, partition: int) -> bool:
        hosted = self.replicas.host.partitions.named(topic, partition)
        return hosted is None or type(hosted.role) is not Leader or not hosted.role.is_end_unknown

    def replay(self, topic: str, partition: int) -> Iterable[Replayed]:
        """All but what is damaged: that is lost, or `is_whole` would say so."""
        hosted = self.replicas.host.partitions.named(topic, partition)
        if hosted is None:
            return
        offset: int | None = hosted.log.log_start_offset
        while offset is not None and offset < hosted.log.log_end_offset:
            before = offset
            read = self.replicas.read_internal(topic, partition, offset, READ_BYTES)
            for header, buffer in batches_of(read):
                if why_invalid(header, buffer) is not None or header.next_offset <= offset:
                    break
                offset = header.next_offset  # whatever a cleaner has left of its records
                yield from self.readable(header, buffer)
            assert offset >= before, "a reader goes on"
            if offset == before:
                offset = self.replicas.scrubber.resumes(hosted, offset)
                self.unreadable += offset is not None

    def readable(self, header: BatchHeader, buffer: Buffer) -> Iterator[Replayed]:
        """A batch whose content makes no sense must not keep its coordinator from all the others."""
        producer_id, epoch = (header.producer_id, header.producer_epoch) if header.is_transactional else (-1, -1)
        try:
            for record in records(header, buffer):
                if not header.is_control:
                    yield Replayed(record, None, producer_id, epoch)
                elif isinstance(marker := decode_control(record), EndTxnMarker):
                    yield Replayed(None, marker, producer_id, epoch)
        except Corrupt:
            self.unreadable += 1


def batches_of(read: Read | Refused) -> Iterator[tuple[BatchHeader, Buffer]]:
    for buffer in () if isinstance(read, Refused) else read.buffers:
        for header in batches(buffer):
            yield header, buffer
