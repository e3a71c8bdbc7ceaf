"""A cluster whose controller recovers a partition, and brokers that say of their logs what a test wants."""

from collections.abc import Iterator
from typing import Any, Self

from tests.unit.controller.cluster import Cluster

from strandline.base.effects import Answered, Failed, Failure, Send
from strandline.controller.tokens import InquirySent
from strandline.metadata import records as r
from strandline.metadata.strategy import STRATEGY_KEY
from strandline.wire.messages.own.get_replica_log_info import (
    GetReplicaLogInfoResponse,
    PartitionLogInfo,
    TopicPartitionLogInfo,
)
from strandline.wire.messages.topics.elect_leaders import ElectLeadersRequest, TopicPartitions

TIMEOUT = 10_000
Log = tuple[int, int]  # what it ends with: epoch, offset


class Recovered(Cluster):
    """A cluster with ELR and recovery, and one partition on all brokers, min ISR 2."""

    def __init__(self, brokers: int = 3, *, strategy: str = "Balanced", is_managed: bool = True) -> None:
        static = {"min.insync.replicas": 2, STRATEGY_KEY: strategy}
        super().__init__(brokers, static, is_recovery_managed=is_managed, recovery_timeout_ms=TIMEOUT)
        self.controller.write(
            [r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)], self.now
        )
        self.create("t", tuple(range(1, brokers + 1)))

    def beat_all(self) -> None:
        for node, broker in self.image.brokers.items():
            if not broker.fenced:
                self.beat(node)

    def pause(self, span_ms: int) -> None:
        """Time passes, and who is there is heard of."""
        for _ in range(span_ms // 1000):
            self.wait(1000)
            self.beat_all()
        self.wait(span_ms % 1000)

    def lose(self, *nodes: int) -> None:
        """These go, one after the other, and start anew, having stopped uncleanly; they are fenced still."""
        for node in nodes:
            self.fence(node)
        for node in nodes:
            self.register(node)

    def outage(self) -> Self:
        """Broker 3 falls behind; 1 and 2, which have everything, stop uncleanly one after the other, and come back."""
        self.alter("t", (1, 2))
        self.lose(1, 2)
        for node in (1, 2):
            self.beat(node)
        return self

    def asked(self) -> list[int]:
        """Who is being asked, once everything that was due is done."""
        self.wait(0)
        return sorted(send.token.broker for send in self.inquiries())

    def inquiries(self) -> Iterator[Send]:
        for effect in self.effects:
            if isinstance(effect, Send) and isinstance(effect.token, InquirySent):
                yield effect

    def say(self, node: int, log: Log, *, high_watermark: int = 0, **fields: Any) -> None:
        """The broker answers the question that is put to it."""
        self.wait(0)
        (send,) = [send for send in self.inquiries() if send.token.broker == node]
        self.effects.remove(send)
        values = {
            "partition": 0,
            "last_written_leader_epoch": log[0],
            "log_end_offset": log[1],
            "current_leader_epoch": self.partition("t").leader_epoch,
            "high_watermark": high_watermark,
        }
        broker_epoch = fields.pop("broker_epoch", self.epochs[node])
        row = PartitionLogInfo(**{**values, **fields})
        (topic,) = send.message.topic_partitions
        rows = (TopicPartitionLogInfo(topic_id=topic.topic_id, partition_log_info=(row,)),)
        message = GetReplicaLogInfoResponse(broker_epoch=broker_epoch, topic_partition_log_info_list=rows)
        self.take(self.controller.step(Answered(send.token, message), self.now))
        self.wait(0)

    def be_silent(self, node: int) -> None:
        (send,) = [send for send in self.inquiries() if send.token.broker == node]
        self.effects.remove(send)
        self.take(self.controller.step(Failed(send.token, Failure.TIMED_OUT), self.now))

    @property
    def leader(self) -> int:
        return self.partition("t").leader


def elect(kind: int, designated: int | None = None, timeout_ms: int = 5000) -> ElectLeadersRequest:
    row = TopicPartitions(topic="t", partitions=(0,), designated_leaders=None if designated is None else (designated,))
    return ElectLeadersRequest(election_type=kind, topic_partitions=(row,), timeout_ms=timeout_ms)
