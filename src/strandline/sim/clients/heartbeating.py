"""A member of a consumer group (KIP-848), as real ones behave: it joins with an id of its own and epoch 0, owns what it
is assigned, gives back first what it loses, and reports what it owns. It commits a position in each partition, always
one further.

Now and then it leaves, dies, hangs, does not give back what it should, or subscribes to something else. Where an answer
is missing it says everything again. A commit without an answer may come late; so the member is dead from then on, and
comes back as another one.
"""

import re
from collections.abc import Generator, Iterable
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import INTERNAL_TOPICS, OFFSETS_TOPIC, TopicPartition, Uuid, uuid_text
from strandline.base.value import Value
from strandline.sim.clients.client import Life, Stage
from strandline.sim.clients.committer import ELSEWHERE, Coordinated
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from strandline.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

E = ErrorCode
LEAVES, BE_BACK = -1, -2  # epochs
REBALANCE_MS = 1000
HURRIED_MS = (2, 20)
PAST_MAX = 3  # epochs that a member remembers: the first of these is none that the coordinator accepts
SILENT_MS = (400, 4000)  # sometimes longer than a session
LONG_MS = (1000, 6000)
FENCED = (E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID, E.GROUP_ID_NOT_FOUND)  # it has nothing, and joins again
ENDED = (E.FENCED_INSTANCE_ID, E.UNRELEASED_INSTANCE_ID)  # a real client ends, and somebody starts it again
At = tuple[Uuid, int]
Asking = Generator[Any, Any, Any]


class Habits(Value, frozen=True):
    """What a member does beside its work. `interests`: what it may subscribe to, names or a regular expression."""

    interests: tuple[tuple[str, ...] | str, ...]
    instance_id: str | None = None
    assignor: str | None = None
    is_stubborn: bool = False  # sometimes it gives nothing back until it is fenced
    heartbeat_ms: int = 150


class Heartbeating(Coordinated):
    """`topic`: the one in which it commits, which is never deleted. `committed`: what the group knows to be committed
    there, by partition."""

    def __init__(
        self, stage: Stage, name: str, group: str, topic: str, habits: Habits, committed: dict[int, int]
    ) -> None:
        super().__init__(stage, name, group, topic)
        self.habits = habits
        self.committed = committed
        self.topic_id: Uuid | None = None
        self.subscription = habits.interests[0]
        self.member_id, self.epoch = self.new_id(), 0
        self.owned: set[At] = set()
        self.target: set[At] = set()
        self.reported: frozenset[At] | None = None  # what it said last that it owns; None: nothing yet, or no answer
        self.must_say_all = True
        self.positions: dict[At, int] = {}
        self.epochs: list[tuple[int, frozenset[At]]] = []  # the last ones, and what it owned when each ended
        self.is_steady = False  # so that it does nothing but its work
        self.is_refusing = False
        self.acked = 0
        self.revoked = 0

    def learn_topic(self) -> Life:
        while self.topic_id is None and not self.is_stopped:
            route = yield from self.find_leader(TopicPartition(self.topic, 0))
            self.topic_id = None if route is None else route.topic_id
            yield 50

    def new_id(self) -> str:
        return uuid_text(Uuid(self.rng.randbytes(16)))

    def live(self) -> Life:
        yield from self.learn_topic()
        while not self.is_stopped:
            if (yield from self.beat()):
                self.reconcile()
                yield from self.work()
                yield from self.change_something()
            yield self.pause(self.habits.heartbeat_ms // 2, self.habits.heartbeat_ms * 3 // 2)
        self.report(
            f"was told {self.acked} times that a position is committed, and gave back {self.revoked} partitions"
        )

    # --- heartbeats

    def beat(self) -> Asking:
        """True: it is a member."""
        said, wanted = frozenset(self.owned), self.subscription
        hurried, coordinator = self.rng.randrange(8) == 0, self.coordinator
        answer = yield from self.ask(self.heartbeat(said), timeout_ms=self.pause(*HURRIED_MS) if hurried else 1500)
        if answer is None and hurried:  # it asks again, perhaps before what it was to be answered is committed
            self.must_say_all, self.coordinator = True, coordinator
            answer = yield from self.ask(self.heartbeat(said))
        if answer is None:
            self.must_say_all, self.reported = True, None
            return False
        error = E(answer.error_code)
        if error is not E.NONE:
            self.must_say_all, self.reported = True, None
            yield from self.refused(error)
            return False
        assert answer.member_id in (None, self.member_id), f"{self.name} is called {answer.member_id}"
        assert answer.member_epoch > 0, f"{self.name} is in epoch {answer.member_epoch}"
        if answer.member_epoch != self.epoch:
            self.report(f"is in epoch {answer.member_epoch} of {self.group}")
            self.epochs = [*self.epochs[1 - PAST_MAX :], (self.epoch, said)] if self.epoch else []
        self.epoch, self.reported = answer.member_epoch, said
        self.must_say_all = self.subscription != wanted  # it has subscribed to something else meanwhile
        if answer.assignment is not None:
            self.target = {
                (Uuid(row.topic_id), p) for row in answer.assignment.topic_partitions for p in row.partitions
            }
        return True

    def heartbeat(self, owned: frozenset[At]) -> ConsumerGroupHeartbeatRequest:
        """What has not changed is not said again, but after an answer that is missing."""
        says_all = self.must_say_all or self.epoch == 0
        names = self.subscription if isinstance(self.subscription, tuple) else ()
        regex = self.subscription if isinstance(self.subscription, str) else ""
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.habits.instance_id,
            rebalance_timeout_ms=REBALANCE_MS if says_all else -1,
            subscribed_topic_names=names if says_all else None,
            subscribed_topic_regex=regex if says_all else None,
            server_assignor=self.habits.assignor if says_all else None,
            topic_partitions=rows_of(owned) if says_all or owned != self.reported else None,
        )

    def refused(self, error: ErrorCode) -> Asking:
        if error in FENCED:
            self.report(f"is fenced from {self.group}: {error.name}")
            self.begin_again()
        elif error in ENDED:
            self.die()
            yield self.pause(*SILENT_MS)

    def begin_again(self) -> None:
        """With nothing, and the same id."""
        self.epoch, self.must_say_all, self.reported = 0, True, None
        self.owned, self.target, self.positions = set(), set(), {}
        self.epochs = []
        self.is_refusing = False

    def die(self) -> None:
        """Nobody says goodbye. What comes in its place has another id."""
        self.begin_again()
        self.member_id = self.new_id()

    # --- what it owns

    def reconcile(self) -> None:
        lost, gained = self.owned - self.target, self.target - self.owned
        if lost:
            if self.habits.is_stubborn and not self.is_refusing and self.rng.randrange(4) == 0:
                self.is_refusing = True
                self.report("gives nothing back")
            if self.is_refusing:
                return
            if self.rng.randrange(3) == 0:
                return  # not yet: it goes on sending heartbeats
            self.owned -= lost
            self.revoked += len(lost)
            for at in lost:
                self.positions.pop(at, None)
            return  # and reports that, before it takes more
        self.owned |= gained

    def work(self) -> Asking:
        """One commit in one partition whose topic stays."""
        mine = sorted(at for at in self.owned & self.target if at[0] == self.topic_id)
        if not mine:
            return
        at = self.rng.choice(mine)
        if at not in self.positions and not (yield from self.read(at)):
            return
        yield from self.advance(at)

    def read(self, at: At) -> Asking:
        wanted = (OffsetFetchRequestTopics(name=self.topic, partition_indexes=(at[1],)),)
        group = OffsetFetchRequestGroup(
            group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, topics=wanted
        )
        answer = yield from self.ask(OffsetFetchRequest(groups=(group,)), 9)
        if answer is None or answer.groups[0].error_code:
            if answer is not None and answer.groups[0].error_code in ELSEWHERE:
                self.coordinator = None
            return False
        row = answer.groups[0].topics[0].partitions[0]
        if row.error_code:
            return False
        self.positions[at] = row.committed_offset
        return True

    def advance(self, at: At) -> Asking:
        position = self.positions[at] + 1
        answer = yield from self.ask(self.commit_of(at, position, self.epoch), 9)
        if answer is None:
            self.report("gets no answer to a commit, and ends")
            self.die()
            return
        error = E(answer.topics[0].partitions[0].error_code)
        if error in ELSEWHERE:
            self.coordinator = None
        elif error in FENCED:
            yield from self.refused(error)
        if error is not E.NONE:
            # It may be in the log all the same, and come to be committed.
            self.positions.pop(at, None)
            return
        committed = self.committed.get(at[1], -1)
        if not self.stage.is_exceeded(OFFSETS_TOPIC):
            what = f"{self.name} set {self.group}'s position in {at[1]} back from {committed} to {position}"
            assert position > committed, f"{what}, in epoch {self.epoch}"
        self.positions[at] = position
        self.committed[at[1]] = max(committed, position)
        self.acked += 1

    def commit_of(self, at: At, position: int, epoch: int) -> OffsetCommitRequest:
        rows = (OffsetCommitRequestPartition(partition_index=at[1], committed_offset=position),)
        return OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=epoch,
            member_id=self.member_id,
            group_instance_id=self.habits.instance_id,
            topics=(OffsetCommitRequestTopic(name=self.topic, partitions=rows),),
        )

    # --- what it does beside that

    def change_something(self) -> Asking:
        if self.is_steady:
            return
        if len(self.epochs) == PAST_MAX and self.rng.randrange(6) == 0:
            yield from self.speak_as_before()
        if self.rng.randrange(5):
            return
        match self.rng.randrange(6):
            case 0:
                yield from self.leave(BE_BACK if self.habits.instance_id and self.rng.randrange(3) else LEAVES)
                yield self.pause(20, 600)
            case 1:
                self.report("dies")
                self.die()
                yield self.pause(*SILENT_MS)
            case 2:
                self.report("hangs")
                yield self.pause(*LONG_MS)
                yield from self.work()  # as if nothing had happened
            case _ if len(self.habits.interests) > 1:
                self.subscribe(self.rng.choice(self.habits.interests))

    def subscribe(self, subscription: tuple[str, ...] | str) -> None:
        self.subscription, self.must_say_all = subscription, True
        self.report(f"subscribes to {self.subscription}")

    def speak_as_before(self) -> Asking:
        """An older state of the same process, as of a machine that was suspended and copied, sends what it would have
        sent then: a heartbeat, and a commit in a partition that it does not own any more. Both must be refused."""
        epoch, owned = self.epochs[0]
        self.report(f"speaks as in epoch {epoch}")
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.habits.instance_id,
            topic_partitions=rows_of(owned),
        )
        yield from self.ask(request)
        # What it has not reported to have given back, it may still commit.
        kept = owned if self.reported is None else self.owned | self.target | self.reported
        lost = sorted(at for at in owned - kept if at[0] == self.topic_id)
        if lost:
            answer = yield from self.ask(self.commit_of(lost[0], 0, epoch), 9)
            error = None if answer is None else E(answer.topics[0].partitions[0].error_code)
            assert error is not E.NONE or self.stage.is_exceeded(OFFSETS_TOPIC), (
                f"{self.name} commits in partition {lost[0][1]}, which it had in epoch {epoch} and has not any more"
            )

    def leave(self, epoch: int) -> Asking:
        self.report(f"leaves {self.group} with epoch {epoch}")
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=epoch, instance_id=self.habits.instance_id
        )
        yield from self.ask(request)
        self.die()

    # --- for those who look

    def is_subscribed_to(self, topic: str) -> bool:
        if isinstance(self.subscription, tuple):
            return topic in self.subscription
        return topic not in INTERNAL_TOPICS and re.fullmatch(self.subscription, topic) is not None


def rows_of(ats: Iterable[At]) -> tuple[TopicPartitions, ...]:
    found: dict[Uuid, list[int]] = {}
    for topic_id, partition in sorted(ats):
        found.setdefault(topic_id, []).append(partition)
    return tuple(TopicPartitions(topic_id=topic_id, partitions=tuple(them)) for topic_id, them in found.items())
