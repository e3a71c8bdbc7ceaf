"""A member that speaks the classic protocol as librdkafka's consumers do: with a real subscription, and assignments by
the member that leads the group. It consumes eagerly (it gives back everything before it joins) or cooperatively (it
keeps what it has, and joins again when it has given back what it loses).

It has the same habits as a member of the consumer protocol, and may be in one group with such members. It commits a
position in each partition of one topic, always one further. A commit without an answer may come late; so the member is
dead from then on, and comes back as another one.
"""

from collections.abc import Collection, Generator, Mapping
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, Uuid
from strandline.sim.clients.client import Life, Request, Stage
from strandline.sim.clients.committer import Coordinated
from strandline.sim.clients.heartbeating import HURRIED_MS, LONG_MS, SILENT_MS, At, Habits
from strandline.wire.messages.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_embedded,
    encode_embedded,
)
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.groups.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from strandline.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic

E = ErrorCode
EAGER, COOPERATIVE = "range", "cooperative-sticky"
SESSION_MS, REBALANCE_MS = 2500, 1000
WAIT_MS = 2500  # longer than a rebalance
VERSION = 1  # of the embedded protocol: the first one that has owned partitions
GONE = (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID)  # it has nothing, and joins as another one
SLOWLY_MS = (50, 800)
LOOK = 8  # one round in so many looks at the topics
Named = tuple[str, int]  # a partition by the name of its topic
Topics = dict[str, tuple[Uuid, int]]
Asking = Generator[Any, Any, Any]


class Classical(Coordinated):
    """`topic`: the one in which it commits, which is never deleted. `committed`: what the group knows to be committed
    there, by partition."""

    def __init__(
        self, stage: Stage, name: str, group: str, topic: str, habits: Habits, committed: dict[int, int], strategy: str
    ) -> None:
        super().__init__(stage, name, group, topic)
        assert all(isinstance(one, tuple) for one in habits.interests), "it has no expressions"
        self.habits = habits
        self.committed = committed
        self.strategy = strategy
        self.subscription = habits.interests[0]
        self.member_id, self.generation = "", -1
        self.topics: Topics = {}  # of its subscription, as it saw them last
        self.joined_with: tuple[object, ...] = ()  # the subscription and the topics of its last JoinGroup
        self.given: set[Named] = set()  # what it was assigned last
        self.holds: set[Named] = set()
        self.positions: dict[int, int] = {}
        self.is_steady = False
        self.is_slow = False  # it always takes its time to give partitions back, else in half of the cases
        self.acked = 0
        self.others: Topics = {}  # of all members' subscriptions, as it saw them last; empty if it does not lead

    def live(self) -> Life:
        while not self.is_stopped:
            if (yield from self.look()) and (yield from self.join()):
                yield from self.work()
            yield self.pause(20, 100)
        self.report(f"was told {self.acked} times that a position is committed")

    # --- what it knows

    @property
    def epoch(self) -> int:
        return self.generation if self.member_id else 0

    @property
    def owned(self) -> set[At]:
        return {(self.topics[name][0], p) for name, p in self.holds if name in self.topics}

    @property
    def target(self) -> set[At]:
        return {(self.topics[name][0], p) for name, p in self.given if name in self.topics}

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscription

    def look(self) -> Asking:
        rows = tuple(MetadataRequestTopic(name=name) for name in self.subscription)
        request = MetadataRequest(topics=rows, allow_auto_topic_creation=False)
        answer = yield Request(self.any_node(), request, 12, 1000)
        if answer is not None:
            self.topics = {
                row.name: (row.topic_id, len(row.partitions))
                for row in answer.topics
                if row.name and not row.error_code
            }
        return answer is not None

    # --- it joins

    def join(self) -> Asking:
        """True: it has an assignment, and may consume. It joins again when it has given back what it loses."""
        while not self.is_stopped:
            if self.strategy == EAGER:
                self.give_back(set(self.holds))
            self.joined_with = self.subscription, dict(self.topics)
            joined = yield from self.ask_to_join()
            if joined is None or joined.error_code:
                if joined is not None and joined.error_code == E.MEMBER_ID_REQUIRED:
                    self.member_id = joined.member_id
                    continue
                self.refused(None if joined is None else E(joined.error_code))
                return False
            assert joined.protocol_name == self.strategy, f"{self.name} is told of protocol {joined.protocol_name}"
            if joined.generation_id != self.generation:
                self.report(f"is in generation {joined.generation_id} of {self.group}")
            self.member_id, self.generation = joined.member_id, joined.generation_id
            lost = yield from self.sync(joined)
            if lost is None:
                return False
            if not lost:
                return True
            is_slow = self.rng.randrange(2) or self.is_slow
            if is_slow and not (yield from self.finish(lost)):
                return False
            self.give_back(lost)
        return False

    def ask_to_join(self) -> Asking:
        """Now and then it does not wait: it asks what it has in the generation that it knows, perhaps before that is
        committed, and joins again whatever it is told. Nobody forbids a client to do so."""
        if self.epoch > 0 and self.rng.randrange(2):
            coordinator = self.coordinator
            joined = yield from self.ask(self.join_request(), 9, self.pause(*HURRIED_MS))
            if joined is not None:
                return joined
            self.coordinator = coordinator
            yield from self.ask(self.sync_request(()), 5, WAIT_MS)
        return (yield from self.ask(self.join_request(), 9, WAIT_MS))

    def finish(self, lost: set[Named]) -> Asking:
        """It consumes for a while what it is to give back, and commits before it does. False: it was refused."""
        yield self.pause(*SLOWLY_MS)
        mine = sorted(partition for name, partition in lost if name == self.topic)
        return not mine or (yield from self.advance(mine[0]))

    def join_request(self) -> JoinGroupRequest:
        value = ConsumerProtocolSubscription(
            topics=tuple(sorted(self.subscription)), owned_partitions=rows_of(self.holds)
        )
        metadata = encode_embedded(value, VERSION)
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self.habits.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=(JoinGroupRequestProtocol(name=self.strategy, metadata=metadata),),
        )

    def sync(self, joined: JoinGroupResponse) -> Asking:
        """What it must give back; None: it has no assignment."""
        leads = joined.members and not joined.skip_assignment
        names = {name for member in joined.members for name in subscription_of(member).topics} if leads else set()
        self.others = {}
        if leads and not (yield from self.look_at_all(names)):
            return None
        shares = assigned(joined.members, self.others, self.strategy) if leads else ()
        synced = yield from self.ask(self.sync_request(shares), 5, WAIT_MS)
        if synced is None or synced.error_code:
            self.refused(None if synced is None else E(synced.error_code))
            return None
        given = decode_embedded(ConsumerProtocolAssignment, synced.assignment) if synced.assignment else None
        self.given = set() if given is None else named(given.assigned_partitions)
        lost = self.holds - self.given
        self.holds |= self.given
        return lost

    def sync_request(self, shares: tuple[SyncGroupRequestAssignment, ...]) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.habits.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.strategy,
            assignments=shares,
        )

    def look_at_all(self, names: Collection[str]) -> Asking:
        """The leader assigns what others subscribe to, too."""
        mine = self.subscription
        self.subscription = tuple(sorted(names))
        is_known = yield from self.look()
        self.subscription = mine
        self.others = self.topics
        self.topics = {name: them for name, them in self.topics.items() if name in mine}
        return is_known

    def give_back(self, lost: set[Named]) -> None:
        self.holds -= lost
        for name, partition in lost:
            if name == self.topic:
                self.positions.pop(partition, None)

    def refused(self, error: ErrorCode | None) -> None:
        if error in GONE:
            self.die()
        elif error is E.ILLEGAL_GENERATION:
            self.give_back(set(self.holds))  # it has missed a rebalance: others may have these by now

    def die(self) -> None:
        """What comes in its place has another id."""
        self.holds, self.given, self.positions = set(), set(), {}
        self.member_id, self.generation = "", -1

    # --- what it does as a member

    def work(self) -> Asking:
        while not self.is_stopped:
            mine = sorted(partition for name, partition in self.holds if name == self.topic)
            if mine and not (yield from self.advance(self.rng.choice(mine))):
                return
            if not (yield from self.beat()):
                return
            yield self.pause(self.habits.heartbeat_ms // 2, self.habits.heartbeat_ms)
            if self.rng.randrange(LOOK) == 0:
                yield from self.look()
                if self.is_steady and self.others and (yield from self.has_news_for_others()):
                    return
            if self.is_steady or self.rng.randrange(20):
                pass
            elif (yield from self.change_something()):
                return
            if (self.subscription, self.topics) != self.joined_with:
                return  # it joins again, as the leader must

    def has_news_for_others(self) -> Asking:
        """The leader watches what it has assigned: nobody else makes the group assign anew."""
        before = self.others
        yield from self.look_at_all(before)
        return self.others != before

    def beat(self) -> Asking:
        """False: it must join."""
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.habits.instance_id,
        )
        answer = yield from self.ask(request, 4, WAIT_MS)
        if answer is None:
            return True  # it sends the next one, to whoever is coordinator then
        error = E(answer.error_code)
        self.refused(error)
        return error is E.NONE or error not in (E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION, *GONE)

    def advance(self, partition: int) -> Asking:
        if partition not in self.positions:
            committed = yield from self.fetch(partition)
            if committed is None:
                return True
            if committed < 0 and self.stage.was_removed(self.group, self.topic, partition):
                self.committed.pop(partition, None)
            self.positions[partition] = committed
        position, committed = self.positions[partition] + 1, self.committed.get(partition, -1)
        if (yield from self.find_coordinator()) is None:
            return True
        error = yield from self.commit(partition, position, self.generation, self.member_id, self.habits.instance_id)
        if error is not E.NONE:
            self.positions.pop(partition, None)
            if error is None:
                self.report("gets no answer to a commit, and ends")
                self.die()
            else:
                self.refused(error)
            return error not in (None, E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION, *GONE)
        committed = self.committed.get(partition, -1)
        if not self.stage.is_exceeded(OFFSETS_TOPIC):
            what = f"{self.name} set {self.group}'s position in {partition} back from {committed} to {position}"
            assert position > committed, f"{what}, in generation {self.generation}"
        self.positions[partition] = position
        self.committed[partition] = max(committed, position)
        self.acked += 1
        return True

    def change_something(self) -> Asking:
        """True: it is no member any more."""
        match self.rng.randrange(4):
            case 0:
                yield from self.leave()
                return True
            case 1:
                self.report("dies")
                self.die()
                yield self.pause(*SILENT_MS)
                return True
            case 2:
                self.report("hangs")
                yield self.pause(*LONG_MS)  # and goes on as if nothing had happened
            case _:
                self.subscribe(self.rng.choice(self.habits.interests))
        return False

    def subscribe(self, subscription: tuple[str, ...] | str) -> None:
        self.subscription = subscription
        self.report(f"subscribes to {subscription}")

    def leave(self) -> Asking:
        """A static member says nothing: it will be back."""
        if self.member_id and self.habits.instance_id is None:
            self.report(f"leaves {self.group}")
            identity = MemberIdentity(member_id=self.member_id)
            yield from self.ask(LeaveGroupRequest(group_id=self.group, members=(identity,)), 5, WAIT_MS)
        self.die()


# --- the leader of a classic group


def assigned(
    members: tuple[JoinGroupResponseMember, ...], topics: Mapping[str, tuple[Uuid, int]], strategy: str
) -> tuple[SyncGroupRequestAssignment, ...]:
    """Each partition goes to one that is subscribed to it and has few. Cooperatively it stays where it is while that is
    fair, and nobody gets what another member has not given back."""
    wants = {member.member_id: subscription_of(member) for member in members}
    holders = {at: one for one, wanted in sorted(wants.items()) for at in named(wanted.owned_partitions)}
    shares: dict[str, set[Named]] = {member_id: set() for member_id in wants}
    for name in sorted(topics):
        able = sorted(one for one, wanted in wants.items() if name in wanted.topics)
        count = topics[name][1]
        most = -(-count // len(able)) if able else 0
        for at in ((name, partition) for partition in range(count if able else 0)):
            holder = holders.get(at, "") if strategy == COOPERATIVE else ""
            in_topic = {one: sum(1 for other, _ in shares[one] if other == name) for one in able}
            keeps = holder in able and in_topic[holder] < most
            to = holder if keeps else min(able, key=lambda one: (in_topic[one], one))
            if holder in ("", to):
                shares[to].add(at)
    return tuple(
        SyncGroupRequestAssignment(
            member_id=member_id,
            assignment=encode_embedded(ConsumerProtocolAssignment(assigned_partitions=rows_of(share)), VERSION),
        )
        for member_id, share in shares.items()
    )


def subscription_of(member: JoinGroupResponseMember) -> ConsumerProtocolSubscription:
    return decode_embedded(ConsumerProtocolSubscription, member.metadata)


def rows_of(partitions: set[Named]) -> tuple[TopicPartition, ...]:
    found: dict[str, list[int]] = {}
    for name, partition in sorted(partitions):
        found.setdefault(name, []).append(partition)
    return tuple(TopicPartition(topic=name, partitions=tuple(them)) for name, them in found.items())


def named(rows: tuple[TopicPartition, ...]) -> set[Named]:
    return {(row.topic, partition) for row in rows for partition in row.partitions}
