"""Groups that move between the classic and the consumer protocol while librdkafka's consumers consume (KIP-848)."""

import time
import uuid
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, ConsumerGroupType, KafkaException, Producer, TopicPartition
from tests.cluster.driving import coordinator_of, create, isr_of, quiet, until

from strandline.client.ask import ask
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess
from strandline.wire.messages.groups.list_groups import ListGroupsRequest

pytestmark = pytest.mark.cluster

PARTITIONS = 6


class Member:
    """A consumer that commits what it has consumed before it gives partitions back, and when it closes."""

    def __init__(self, world: "World", **settings: str) -> None:
        self.world = world
        world.members.append(self)
        config = quiet(
            world.cluster.bootstrap,
            group_id=world.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            reconnect_backoff_max_ms="200",
            **settings,
        )
        self.consumer = Consumer(config)
        self.consumer.subscribe([world.topic], on_revoke=self.commit, on_lost=lambda *_: None)

    def commit(self, *_: object) -> None:
        with suppress(KafkaException):  # nothing to commit, or nobody to commit to
            for row in self.consumer.commit(asynchronous=False) or ():
                if row.error is None and row.offset >= 0:
                    self.world.acked[row.partition] = max(self.world.acked[row.partition], row.offset)

    def poll(self) -> None:
        for message in self.consumer.consume(50, 0.02):
            if not message.error():
                at, offset = message.partition() or 0, message.offset() or 0
                assert offset >= self.world.acked[at], f"offset {offset} of {at} is consumed, and was committed before"
                self.world.consumed[message.value() or b""] += 1

    def owns(self) -> set[int]:
        return {at.partition for at in self.consumer.assignment()}

    def close(self) -> None:
        self.commit()
        self.consumer.close()
        self.world.members.remove(self)


class World:
    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.topic, self.group = f"move-{uuid.uuid4().hex[:10]}", f"g-{uuid.uuid4().hex[:10]}"
        self.consumed: Counter[bytes] = Counter()
        self.acked: Counter[int] = Counter()  # by partition: the offset that the group was told to be committed
        self.members: list[Member] = []  # that are running
        self.made = 0
        create(cluster, self.topic, partitions=PARTITIONS)
        self.producer = Producer(quiet(cluster.bootstrap))

    def produce(self, count: int) -> None:
        for _ in range(count):
            self.producer.produce(self.topic, str(self.made).encode(), partition=self.made % PARTITIONS)
            self.made += 1
        assert self.producer.flush(20) == 0

    def shared_by(self, *members: Member, timeout_s: float = 40) -> None:
        """They own all partitions, each of them some, and have consumed all that there is, also what comes now."""
        self.produce(12)
        end = time.monotonic() + timeout_s
        while True:
            for member in members:
                member.poll()
            owned = [member.owns() for member in members]
            is_shared = all(owned) and sorted(p for them in owned for p in them) == list(range(PARTITIONS))
            if is_shared and len(self.consumed) == self.made:
                return
            assert time.monotonic() < end, f"{owned}, {len(self.consumed)} of {self.made} consumed, group {self.type()}"

    def becomes(self, wanted: ConsumerGroupType) -> None:
        """Until the group has this type. Its members go on meanwhile."""
        end = time.monotonic() + 20
        while self.type() != wanted:
            for member in self.members:
                member.poll()
            assert time.monotonic() < end, f"the group does not become {wanted}"

    def kill_coordinator(self) -> NodeProcess:
        node = self.cluster.node(coordinator_of(self.cluster, self.group))
        node.kill()
        return node

    def type(self) -> ConsumerGroupType | None:
        """As its coordinator says. A broker that is dead is not waited for."""
        node = self.cluster.node(until(lambda: coordinator_of(self.cluster, self.group)))
        listed = ask(HOST, node.port, ListGroupsRequest(), 5, timeout_s=10)
        return next((ConsumerGroupType[g.group_type.upper()] for g in listed.groups if g.group_id == self.group), None)

    def committed(self, members: Iterable[Member]) -> int:
        for member in members:
            member.commit()
        reader = Consumer(quiet(self.cluster.bootstrap, group_id=self.group))
        rows = reader.committed([TopicPartition(self.topic, p) for p in range(PARTITIONS)], timeout=10)
        reader.close()
        return sum(row.offset for row in rows)


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
def test_a_group_moves_to_the_consumer_protocol_and_back(shared_cluster: LocalCluster, strategy: str) -> None:
    world = World(shared_cluster)
    classic = {"partition_assignment_strategy": strategy, "heartbeat_interval_ms": "200", "session_timeout_ms": "6000"}
    first, second = Member(world, **classic), Member(world, **classic)
    world.shared_by(first, second)
    assert world.type() == ConsumerGroupType.CLASSIC

    third = Member(world, group_protocol="consumer")
    world.shared_by(first, second, third)
    assert world.type() == ConsumerGroupType.CONSUMER
    assert world.committed([first, second, third]) == world.made, "offsets count on"

    first.close()
    world.shared_by(second, third)
    second.close()
    world.shared_by(third)
    assert world.type() == ConsumerGroupType.CONSUMER

    fourth = Member(world, **classic)
    world.shared_by(third, fourth)
    third.close()
    world.shared_by(fourth)
    assert world.type() == ConsumerGroupType.CLASSIC
    assert world.committed([fourth]) == world.made
    fourth.close()
    twice = {value: count for value, count in world.consumed.items() if count > 1}
    assert not twice, "each member commits before it gives partitions back"


@pytest.mark.parametrize("strategy", ["cooperative-sticky", pytest.param("range", marks=pytest.mark.long)])
def test_a_group_goes_on_when_its_coordinator_is_killed_while_it_moves(cluster: LocalCluster, strategy: str) -> None:
    """Once on the way to the consumer protocol, and once on the way back. Records may come twice, but none that the
    group was told to be committed."""
    world = World(cluster)
    classic = {"partition_assignment_strategy": strategy, "heartbeat_interval_ms": "200", "session_timeout_ms": "6000"}
    first, second = Member(world, **classic), Member(world, **classic)
    world.shared_by(first, second)
    assert world.committed([first, second]) == world.made

    third = Member(world, group_protocol="consumer")
    world.produce(12)
    world.becomes(ConsumerGroupType.CONSUMER)
    dead = world.kill_coordinator()
    world.shared_by(first, second, third)
    assert world.type() == ConsumerGroupType.CONSUMER
    assert world.committed([first, second, third]) == world.made

    dead.start()
    until(lambda: len(isr_of(cluster, world.topic)) == len(cluster.nodes), 30)
    world.produce(12)
    third.close()
    world.becomes(ConsumerGroupType.CLASSIC)
    world.kill_coordinator()
    world.shared_by(first, second)
    assert world.type() == ConsumerGroupType.CLASSIC
    assert world.committed([first, second]) == world.made
    first.close()
    second.close()
