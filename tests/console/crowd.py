"""A made-up cluster of thousands of partitions, of which some change with every look: for what the console costs."""

import random
import time
from collections.abc import Iterable

from strandline.client.admin.loss_ledger import Ledger
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.quorum import Quorum, QuorumMember
from strandline.client.admin.replica_logs import ReplicaLog
from strandline.console.facts import SOURCES, Observed, Source
from strandline.wire.messages.cluster.describe_cluster import DescribeClusterBroker, DescribeClusterResponse

NODES, TOPICS = 3, 50
CHANGED = 50  # partitions that are others with every look


class Crowd:
    def __init__(self, partitions: int) -> None:
        self.random = random.Random(1)
        each = partitions // TOPICS
        self.states = [self.state(Place(f"topic-{index // each:02}", index % each), 0) for index in range(partitions)]
        self.began = time.monotonic()

    def state(self, at: Place, epoch: int) -> PartitionState:
        replicas = tuple(self.random.sample(range(1, NODES + 1), NODES))
        isr = replicas[: self.random.choice((1, 2, 3, 3, 3, 3))]
        return PartitionState(at, replicas, isr, isr[0], epoch, min_isr=2, partition_epoch=epoch, strategy="Balanced")

    def partitions(self, _: Observed) -> tuple[PartitionState, ...]:
        for index in self.random.sample(range(len(self.states)), CHANGED):
            old = self.states[index]
            self.states[index] = self.state(old.at, old.leader_epoch + 1)
        return tuple(self.states)

    def logs(self, observed: Observed) -> dict[Place, tuple[ReplicaLog, ...]]:
        end = int((time.monotonic() - self.began) * 1000)
        return {
            at: tuple(ReplicaLog(node, 0, end - node, end - NODES) for node in (1, 2, 3)) for at in observed.watched
        }

    def cluster(self, _: Observed) -> DescribeClusterResponse:
        rows = (DescribeClusterBroker(broker_id=node, host="127.0.0.1", port=node) for node in range(1, NODES + 1))
        return DescribeClusterResponse(cluster_id="crowd", brokers=tuple(rows))

    def quorum(self, _: Observed) -> Quorum:
        end = int(time.monotonic() * 10)
        return Quorum(1, 1, end, tuple(QuorumMember(node, True, end, 0, 0) for node in range(1, NODES + 1)))

    def ledger(self, _: Observed) -> Ledger:
        return Ledger((), {})

    def sources(self) -> Iterable[Source]:
        """As often as the real ones are asked."""
        for source in SOURCES:
            yield Source(source.name, getattr(self, source.name), source.every_s, source.idle_s)
