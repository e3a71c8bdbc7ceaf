"""A made-up cluster of thousands of partitions and hundreds of groups, of which some change with every look: for what
the console costs."""

import random
import time
from collections.abc import Iterable

from strandline.client.admin.groups.described import GroupState, Listed, Member
from strandline.client.admin.loss_ledger import Ledger
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.quorum import Quorum, QuorumMember
from strandline.client.admin.replica_logs import ReplicaLog
from strandline.client.admin.replicas.reassignments import Move
from strandline.client.admin.replicas.sizes import ReplicaSize
from strandline.console.asking.groups import Groups, GroupSeen, with_groups
from strandline.console.asking.logs import LogEnds, Sizes, with_ends, with_sizes
from strandline.console.asking.metrics import Metrics
from strandline.console.asking.transactions import Transactions
from strandline.console.facts import SOURCES, Observed, Source
from strandline.wire.messages.cluster.describe_cluster import DescribeClusterBroker, DescribeClusterResponse

NODES, TOPICS = 3, 50
CHANGED = 50  # partitions that are others with every look


class Crowd:
    def __init__(self, partitions: int, groups: int = 0) -> None:
        self.groups_count = groups
        self.committed: dict[int, dict[Place, int]] = {}
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

    def ends(self, observed: Observed) -> LogEnds:
        now = time.monotonic() - self.began
        offsets = {state.at: int(now * (index % 97)) for index, state in enumerate(self.states)}
        return with_ends(observed.facts.ends, int(time.time() * 1000), offsets)

    def sizes(self, observed: Observed) -> Sizes:
        now = time.monotonic() - self.began
        replicas = {
            state.at: tuple(ReplicaSize(node, int(now * 1000 * (index % 97)), 0, "/data") for node in state.replicas)
            for index, state in enumerate(self.states)
        }
        return with_sizes(observed.facts.sizes, int(time.time() * 1000), replicas, {})

    def groups(self, observed: Observed) -> Groups:
        """Each with a member, and offsets in one topic; a tenth of them commits between two looks."""
        ends = observed.facts.ends.offsets
        by_topic: dict[str, list[Place]] = {}
        for state in self.states:
            by_topic.setdefault(state.at.topic, []).append(state.at)
        names = list(by_topic)
        for number in range(self.groups_count):
            if number not in self.committed or self.random.random() < 0.1:
                places = by_topic[names[number % len(names)]]
                self.committed[number] = {at: max(ends.get(at, 0) - number, 0) for at in places}
        seen = {}
        for number, committed in self.committed.items():
            name = f"group-{number:03}"
            member = Member("member", "client", "/127.0.0.1", assigned=tuple(committed))
            state = GroupState(name, 1, "classic", "Stable", "consumer", "range", (member,))
            seen[name] = GroupSeen(Listed(name, "classic", "consumer", "Stable", 1), state, committed)
        return with_groups(observed.facts.groups or Groups(), int(time.time() * 1000), ends, seen, {})

    def moves(self, _: Observed) -> tuple[Move, ...]:
        return ()

    def transactions(self, _: Observed) -> Transactions:
        return Transactions()

    def metrics(self, _: Observed) -> Metrics:
        return Metrics()

    def sources(self) -> Iterable[Source]:
        """As often as the real ones are asked."""
        for source in SOURCES:
            yield Source(source.name, getattr(self, source.name), source.every_s, source.idle_s)
