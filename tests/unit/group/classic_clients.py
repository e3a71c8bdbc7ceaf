"""Consumers of the classic protocol that do as clients do: they assign by themselves, eagerly or cooperatively."""

from collections.abc import Iterable
from typing import Any

from tests.unit.group.consuming import SESSION_MS, Consumers, Has

from strandline.base.errors import ErrorCode as E
from strandline.wire.messages.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_embedded,
    encode_embedded,
)
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from strandline.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

EAGER, COOPERATIVE = "range", "cooperative-sticky"
TRY_AGAIN = (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR)
SUBSCRIPTION = encode_embedded(ConsumerProtocolSubscription(topics=("t",)), 3)


class Classic:
    """`next` is what it sends next: "join", "sync" or "beat"; "": it is not in the group."""

    def __init__(
        self,
        world: Consumers,
        protocol: str = COOPERATIVE,
        *,
        topics: tuple[str, ...] = ("t",),
        instance: str | None = None,
        version: int = 3,
    ) -> None:
        self.world = world
        self.protocols: tuple[str, ...] = (protocol,)
        self.topics = topics
        self.instance = instance
        self.version = version  # of the embedded protocol
        self.member_id = ""
        self.generation = -1
        self.has: Has = set()
        self.next = ""
        self.led: JoinGroupResponse | None = None  # what it must assign
        self.watched: dict[str, int] | None = None  # the partitions that the leader has assigned, by topic

    @property
    def epoch(self) -> int:
        return max(self.generation, 0)

    @property
    def is_eager(self) -> bool:
        return self.protocols[0] == EAGER

    # --- what it sends

    def begin(self) -> Any:
        """A new process."""
        self.member_id, self.generation, self.has, self.next = "", -1, set(), "join"
        return self.request()

    def request(self) -> Any:
        if self.next == "beat" and self.watched is not None and self.watched != self.sizes(self.watched):
            self.next = "join"  # the leader has noticed that there are other partitions now
        match self.next:
            case "join":
                if self.is_eager:
                    self.has = set()
                return self.join_request()
            case "sync":
                return self.sync_request()
            case "beat":
                return HeartbeatRequest(
                    group_id="g",
                    member_id=self.member_id,
                    generation_id=self.generation,
                    group_instance_id=self.instance,
                )
        raise AssertionError("it is not in the group")

    def sizes(self, topics: Iterable[str]) -> dict[str, int]:
        return {topic: len(partitions_of(self.world, topic)) for topic in topics}

    def join_request(self) -> JoinGroupRequest:
        subscription = ConsumerProtocolSubscription(
            topics=self.topics, owned_partitions=rows(self.has), generation_id=self.generation
        )
        metadata = encode_embedded(subscription, self.version)
        return JoinGroupRequest(
            group_id="g",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name in self.protocols),
        )

    def sync_request(self) -> SyncGroupRequest:
        led, self.led = self.led, None
        self.watched = None if led is None else self.sizes(topics_of(led))
        return SyncGroupRequest(
            group_id="g",
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name=self.protocols[0],
            assignments=() if led is None else assigned(self.world, led, is_eager=self.is_eager),
        )

    def leave_request(self) -> LeaveGroupRequest:
        self.has, self.next = set(), ""
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        self.generation = -1
        return LeaveGroupRequest(group_id="g", members=(identity,))

    # --- what it hears

    def heard(self, answer: Any) -> bool:
        """Does it go on at once?"""
        error = E(answer.error_code)
        if not self.next or error in TRY_AGAIN:
            if isinstance(answer, SyncGroupResponse) and self.next:
                self.next = "join"
            return False
        match error:
            case E.NONE:
                return self.succeeded(answer)
            case E.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
            case E.REBALANCE_IN_PROGRESS:
                self.next = "join"
            case E.ILLEGAL_GENERATION | E.UNKNOWN_MEMBER_ID:
                self.has, self.generation, self.next = set(), -1, "join"
                if error is E.UNKNOWN_MEMBER_ID:
                    self.member_id = ""
            case _:
                assert error in (E.FENCED_INSTANCE_ID, E.INCONSISTENT_GROUP_PROTOCOL), error
                self.has, self.generation, self.next = set(), -1, ""
                return False
        return True

    def succeeded(self, answer: Any) -> bool:
        match answer:
            case JoinGroupResponse():
                self.member_id, self.generation = answer.member_id, answer.generation_id
                is_leader = answer.leader == answer.member_id and not answer.skip_assignment
                self.led, self.next = (answer if is_leader else None), "sync"
                return True
            case SyncGroupResponse():
                given = (
                    decode_embedded(ConsumerProtocolAssignment, answer.assignment).assigned_partitions
                    if answer.assignment
                    else ()
                )
                was, self.has = self.has, {(row.topic, p) for row in given for p in row.partitions}
                must_give_back = not self.is_eager and bool(was - self.has)
                self.next = "join" if must_give_back else "beat"
                return must_give_back
            case HeartbeatResponse():
                return False
        raise AssertionError(answer)

    # --- both, in a world in which all writes are committed at once

    def play(self, request: Any = None) -> E:
        """One request, and what follows from it at once. Returns the first answer's error; NONE if there is none."""
        first = None
        request = request or self.request()
        for _ in range(20):
            number = self.world.send(request)
            self.world.commit()
            if number not in self.world.answers:
                self.world.parked[number] = self  # type: ignore[attr-defined]
                return first or E.NONE
            answer = self.world.answers[number]
            first = E(answer.error_code) if first is None else first
            if not self.heard(answer):
                return first
            request = self.request()
        raise AssertionError("it asks without end")


def topics_of(led: JoinGroupResponse) -> set[str]:
    return {
        topic
        for member in led.members
        for topic in decode_embedded(ConsumerProtocolSubscription, member.metadata).topics
    }


def rows(has: Has) -> tuple[TopicPartition, ...]:
    topics = sorted({topic for topic, _ in has})
    return tuple(TopicPartition(topic=t, partitions=tuple(sorted(p for u, p in has if u == t))) for t in topics)


def assigned(world: Consumers, led: JoinGroupResponse, *, is_eager: bool) -> tuple[SyncGroupRequestAssignment, ...]:
    """As even as that is easy. Cooperatively, what another member still has nobody gets yet."""
    subscriptions = {m.member_id: decode_embedded(ConsumerProtocolSubscription, m.metadata) for m in led.members}
    owners = {
        (row.topic, p): member_id
        for member_id, subscription in subscriptions.items()
        for row in subscription.owned_partitions
        for p in row.partitions
    }
    given: dict[str, Has] = {member_id: set() for member_id in subscriptions}
    for topic in sorted({topic for subscription in subscriptions.values() for topic in subscription.topics}):
        takers = [member_id for member_id, s in sorted(subscriptions.items()) if topic in s.topics]
        for at in partitions_of(world, topic):
            owner = owners.get(at)
            most = -(-len(partitions_of(world, topic)) // len(takers))
            mine = sum(1 for other in given.get(owner or "", ()) if other[0] == topic)
            taker = owner if owner in takers and mine < most else min(takers, key=lambda m: len(given[m]))
            if is_eager or owner in (None, taker):
                given[taker].add(at)
    return tuple(
        SyncGroupRequestAssignment(
            member_id=member_id,
            assignment=encode_embedded(ConsumerProtocolAssignment(assigned_partitions=rows(has)), 3),
        )
        for member_id, has in given.items()
    )


def partitions_of(world: Consumers, topic: str) -> list[tuple[str, int]]:
    topic_id = world.image.topic_ids.get(topic)
    return [] if topic_id is None else [(topic, p) for p in sorted(world.image.topics[topic_id].partitions)]


class Migrating(Consumers):
    """Both kinds of consumers in group `g`."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        self.parked: dict[int, Classic] = {}

    def hear(self) -> None:
        """Joins and syncs that waited for other members."""
        for _ in range(50):
            ended = [number for number in self.parked if number in self.answers]
            if not ended:
                return
            for number in ended:
                client = self.parked.pop(number)
                if client.heard(self.answers[number]):
                    client.play()
        raise AssertionError("they ask without end")

    def classic(self, protocol: str = COOPERATIVE, **fields: Any) -> Classic:
        client = Classic(self, protocol, **fields)
        client.play(client.begin())
        self.hear()
        return client

    def go_on(self, *clients: Any, rounds: int = 8) -> None:
        """They send heartbeats until nothing changes."""
        for _ in range(rounds):
            for client in clients:
                if isinstance(client, Classic):
                    if client not in self.parked.values():
                        client.play()
                else:
                    client.beat()
                self.hear()

    def shared(self, clients: Iterable[Any]) -> dict[tuple[str, int], int]:
        """How many of them consume each partition."""
        found = {at: 0 for topic in ("t", "u") for at in partitions_of(self, topic)}
        for client in clients:
            for at in client.has:
                found[at] = found.get(at, 0) + 1
        return found


def of_six(**config: Any) -> Migrating:
    world = Migrating(**config)
    world.grow("t", 6)
    return world


def pair(world: Migrating, protocol: str = COOPERATIVE, **fields: Any) -> tuple[Classic, Classic]:
    """Two members of a stable classic group, with three partitions each."""
    a, b = world.classic(protocol, **fields), Classic(world, protocol, **fields)
    b.play(b.begin())
    world.go_on(a, b)
    assert (len(a.has), len(b.has)) == (3, 3)
    return a, b


def all_owned(world: Migrating, *clients: Any) -> bool:
    return all(world.shared(clients)[at] == 1 for at in partitions_of(world, "t"))
