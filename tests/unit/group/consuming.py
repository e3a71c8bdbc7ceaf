"""Consumers of the consumer protocol (KIP-848), as a coordinator sees them: one group, `g`."""

from typing import Any

from tests.unit.group.coordination import Coordination

from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.member import Held, Member
from strandline.group.shards.shard import Shard
from strandline.wire.messages.consumer_groups.consumer_group_describe import ConsumerGroupDescribeRequest
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

Has = set[tuple[str, int]]  # partitions by their topics' names
SESSION_MS, REBALANCE_MS = 45_000, 60_000


class Consumer:
    """A client that does as it is told: what it is not assigned any more it gives up, with its next heartbeat."""

    def __init__(self, world: "Consumers", member_id: str, *, instance: str | None = None, **fields: Any) -> None:
        self.world = world
        self.member_id = member_id
        self.instance = instance
        self.fields: dict[str, Any] = {"subscribed_topic_names": ("t",), **fields}
        self.epoch = 0
        self.has: Has = set()

    def first(self) -> ConsumerGroupHeartbeatRequest:
        return self.request(rebalance_timeout_ms=REBALANCE_MS, topic_partitions=(), **self.fields)

    def request(self, **fields: Any) -> ConsumerGroupHeartbeatRequest:
        given = {"group_id": "g", "member_id": self.member_id, "member_epoch": self.epoch, "instance_id": self.instance}
        return ConsumerGroupHeartbeatRequest(**{**given, **fields})

    def owned(self) -> tuple[TopicPartitions, ...]:
        return self.world.rows(self.has)

    def join(self) -> Any:
        self.epoch, self.has = 0, set()
        return self.took(self.world.ask(self.first()))

    def beat(self, **fields: Any) -> Any:
        """As clients do, it reports what it owns."""
        return self.took(self.world.ask(self.request(**{"topic_partitions": self.owned(), **fields})))

    def leave(self, epoch: int = -1) -> Any:
        return self.world.ask(self.request(member_epoch=epoch))

    def took(self, answer: Any) -> Any:
        if answer.error_code == 0:
            self.epoch, self.member_id = answer.member_epoch, answer.member_id or self.member_id
            if answer.assignment is not None:
                self.has = self.world.names(answer.assignment.topic_partitions)
        return answer


class Consumers(Coordination):
    @property
    def consumers(self) -> ConsumerGroup:
        group = self.shard.consumer("g")
        assert group is not None
        return group

    def consumer(self, member_id: str, **fields: Any) -> Consumer:
        """One that has joined."""
        made = Consumer(self, member_id, **fields)
        assert made.join().error_code == ErrorCode.NONE
        return made

    def rows(self, has: Has) -> tuple[TopicPartitions, ...]:
        topics = sorted({topic for topic, _ in has})
        return tuple(
            TopicPartitions(
                topic_id=self.image.topic_ids[topic], partitions=tuple(sorted(p for t, p in has if t == topic))
            )
            for topic in topics
            if topic in self.image.topic_ids
        )

    def names(self, rows: Any) -> Has:
        return {(self.image.topics[Uuid(bytes(row.topic_id))].name, p) for row in rows for p in row.partitions}

    def held(self, held: Held) -> Has:
        return {(self.image.topics[topic_id].name, p) for topic_id, them in held.items() for p in them}

    def member(self, member_id: str) -> Member:
        return self.consumers.members[member_id]

    def reconcile(self, *consumers: Consumer, rounds: int = 8) -> None:
        """They send heartbeats until nothing changes."""
        for _ in range(rounds):
            for consumer in consumers:
                consumer.beat()

    def described(self) -> Any:
        return self.ask(ConsumerGroupDescribeRequest(group_ids=("g",))).groups[0]


def error_of(answer: ConsumerGroupHeartbeatResponse) -> tuple[ErrorCode, str | None]:
    return ErrorCode(answer.error_code), answer.error_message


def state(world: Consumers) -> Any:
    return replica(world.shard)


def replica(shard: Shard) -> dict[str, Any]:
    """All that is replicated of the consumer groups."""
    return {
        group_id: {key: value for key, value in vars(group).items() if key not in ("is_stale", "history")}
        for group_id, group in shard.groups.items()
        if isinstance(group, ConsumerGroup)
    }
