"""The partitions of internal topics as coordinators want them, on top of the replicas."""

from strandline.base.effects import Effect
from strandline.base.ids import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTION_TOPIC, LeaderEpoch
from strandline.base.time import Instant
from strandline.broker.coordinators.reading import PartitionReader
from strandline.coordination.internal_log import Done, Reader
from strandline.replica.hosting.leader import Leader
from strandline.replica.replicas import Replicas

NO_TIMEOUT_MS = 1 << 40


class InternalTopics:
    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas

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
        assert topic in INTERNAL_TOPICS
        return self.replicas.leads(topic, partition)

    def is_committed(self, topic: str, partition: int) -> bool:
        assert topic in INTERNAL_TOPICS
        hosted = self.replicas.host.partitions.named(topic, partition)
        return hosted is None or type(hosted.role) is not Leader or not hosted.role.is_end_unknown

    def reader(self, topic: str, partition: int) -> Reader:
        hosted = self.replicas.host.partitions.named(topic, partition)
        assert hosted is not None, "this broker leads it"
        return PartitionReader(self.replicas.scrubber, hosted)
