"""What a coordinator promises to members of consumer groups (KIP-848).

- it remembers of a group what its log says
- what it answers is written, and committed
- a partition is promised to a member when the one before has reported that it owns it no longer, or is taken out
- a member is taken out only if it has left, was silent for a session, has not given back in time what it should, or
  another one has come with its instance id; one of the classic protocol also if it has not joined or synced in time
- who speaks with an older epoch is fenced, but for the one before if it owns no more than it has
- the epoch of a group never goes back, nor that of a member without a fence

Only the broker that leads by the committed metadata is asked: one that does not know yet that it leads no longer may
say what was so before.
"""

from collections import defaultdict
from typing import Any

from strandline.base.effects import Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, TopicIdPartition
from strandline.broker.broker import Broker
from strandline.coordination.partitioning import partition_for
from strandline.replica.hosting.leader import Leader
from strandline.sim.hostile import GROUP as STRANGE_GROUP
from strandline.sim.laws.clients.consumers import UNREVOKED, At, Consumers, Gone, Said, flat
from strandline.sim.laws.clients.groups import Groups
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

E = ErrorCode
LEAVES, BE_BACK = -1, -2
FENCED = (E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID)
Asked = tuple[str, int, int, int]  # machine, its life, connection and sequence
Whom = tuple[str, str]  # group and member


class Heard:
    """What one process knows as coordinator: since when, and when it heard of whom, by its own clock."""

    def __init__(self) -> None:
        self.since: dict[int, tuple[Any, int]] = {}  # by partition: the shard that it loaded, and when
        self.members: dict[Whom, int] = {}
        # Of the classic protocol alone: when they were told to join and have not done so since; and joined, and have
        # not synced since. Requests may overtake one another, so each counts.
        self.must_join: defaultdict[Whom, list[int]] = defaultdict(list)
        self.must_sync: defaultdict[Whom, list[int]] = defaultdict(list)
        self.leaving: set[Whom] = set()  # ids of members, and of instances
        self.judged: dict[str, int] = {}  # by group: up to which offset who is gone was judged

    def is_late(self, whom: Whom, gone: Gone, since: int) -> bool:
        """It has not joined in time, or not synced after that. Of one that was never answered it is not known."""
        waits = [*self.must_join[whom], *self.must_sync[whom], *([] if whom in self.members else [since])]
        return any(gone.time - at >= gone.patience_ms for at in waits)


class Promises:
    HEARS = ((Received, ConsumerGroupHeartbeatRequest),)
    ANSWERS = (ConsumerGroupHeartbeatResponse,)

    def __init__(self, world: Subject, groups: Groups) -> None:
        self.world = world
        self.groups = groups
        self.asked: dict[Asked, tuple[ConsumerGroupHeartbeatRequest, int, str | None]] = {}
        self.newest: dict[Whom, Asked] = {}
        self.heard: dict[tuple[str, int], Heard] = {}  # by machine and life
        self.holders: dict[str, dict[At, str]] = {}  # by group: to whom each partition is promised
        self.epochs: dict[str, int] = {}  # of groups, committed
        self.member_epochs: dict[Whom, int] = {}

    def forget(self, machine: Machine) -> None:
        for asked in [asked for asked in self.asked if asked[0] == machine.name]:
            del self.asked[asked]
        for which in [which for which in self.heard if which[0] == machine.name]:
            del self.heard[which]

    def heard_by(self, machine: Machine) -> Heard:
        which = machine.name, machine.life
        heard = self.heard.get(which)
        if heard is None:
            heard = self.heard[which] = Heard()
        return heard

    def look(self, machine: Machine, broker: Broker) -> None:
        since = self.heard_by(machine).since
        for partition, shard in broker.groups.shards.loaded.items():
            known = since.get(partition)
            if known is None or known[0] is not shard:
                since[partition] = shard, machine.clock.now()

    # --- what members say

    def received(self, machine: Machine, event: Any) -> None:
        request: ConsumerGroupHeartbeatRequest = event.message
        whom = request.group_id, request.member_id
        if request.group_id == STRANGE_GROUP:
            return
        # It has that no longer, whomever it tells.
        if request.member_epoch in (0, LEAVES, BE_BACK) or request.topic_partitions is not None:
            self.gives_back(whom, flat(request.topic_partitions or ()))
        if self.leads(machine, request.group_id) is None:
            return
        which = machine.name, machine.life, event.to.connection, event.to.sequence
        self.asked[which] = request, machine.clock.now(), self.why_fenced(machine, request)
        self.newest[whom] = which
        if request.member_epoch == LEAVES:
            leaving = self.heard_by(machine).leaving
            leaving.add(whom)
            if request.instance_id is not None:
                leaving.add((request.group_id, request.instance_id))

    def gives_back(self, whom: Whom, owned: frozenset[At]) -> None:
        """A member says what it owns, and it owns nothing else."""
        holders = self.holders.get(whom[0], {})
        for at in [at for at, holder in holders.items() if holder == whom[1] and at not in owned]:
            del holders[at]

    def leads(self, machine: Machine, group: str) -> Leader | None:
        """None: this is not its coordinator, by what is committed."""
        image = self.world.committed.image
        topic, node = image.topic_named(OFFSETS_TOPIC), machine.node
        if topic is None or node is None or node.broker is None or machine.is_rotten:
            return None
        at = TopicIdPartition(topic.topic_id, partition_for(group, len(topic.partitions)))
        hosted = node.broker.replicas.host.partitions.find(at)
        partition = image.partition(at)
        if hosted is None or partition is None or partition.leader != machine.node_id:
            return None
        role = hosted.role
        return role if type(role) is Leader and role.epoch == partition.leader_epoch else None

    def why_fenced(self, machine: Machine, request: ConsumerGroupHeartbeatRequest) -> str | None:
        """Why must this be refused? Its epoch is neither the present one, nor the one before with nothing owned that
        it has not."""
        found = self.groups.log_of(machine, request.group_id, answers=False) if request.member_epoch > 0 else None
        group = None if found is None else found[0].consumers.get(request.group_id)
        now = None if group is None else group.now_of(request.member_id)
        if now is None or request.member_epoch == now.epoch:
            return None
        what = f"whose epoch {request.member_epoch} is not {now.epoch}"
        if request.member_epoch != now.previous_epoch or request.topic_partitions is None:
            return what
        more = flat(request.topic_partitions) - now.assigned
        return f"{what}, and which owns {sorted(more)} beside what it has" if more else None

    # --- what it answers

    def replies(self, machine: Machine, reply: Reply) -> None:
        which = machine.name, machine.life, reply.to.connection, reply.to.sequence
        known = self.asked.pop(which, None)
        leader = None if known is None else self.leads(machine, known[0].group_id)
        if known is None or leader is None:
            return
        request, at_ms, why_fenced = known
        answer: ConsumerGroupHeartbeatResponse = reply.message
        whom = request.group_id, request.member_id
        if answer.error_code:
            if answer.error_code in FENCED:
                self.member_epochs.pop(whom, None)
            return
        found = self.groups.log_of(machine, request.group_id)
        if found is None:  # more is lost than must survive: what was promised counts no longer
            self.holders.pop(request.group_id, None)
            self.epochs.pop(request.group_id, None)
            for one in [one for one in self.member_epochs if one[0] == request.group_id]:
                del self.member_epochs[one]
            return
        assert why_fenced is None, f"{machine.name} serves {request.member_id}, {why_fenced}"
        replayed, _, start = found
        committed = leader.high_watermark
        group = replayed.consumers.get(request.group_id) or Consumers(request.group_id)
        self.compare(machine, group)
        self.is_written(machine, request, answer, group, committed)
        self.judge(machine, group, start)
        self.epoch_grows(machine, group, committed)
        if request.member_epoch >= 0:
            heard = self.heard_by(machine).members
            heard[whom] = max(heard.get(whom, 0), at_ms)
            if self.newest.get(whom) == which:
                self.member_grows(whom, answer, group)
                if answer.assignment is not None:
                    self.promises(whom, flat(answer.assignment.topic_partitions), group.members())

    def compare(self, machine: Machine, group: Consumers) -> None:
        node = machine.node
        assert node is not None and node.broker is not None
        shard = node.broker.groups.shards.of(group.group_id)
        if isinstance(shard, ErrorCode):
            return
        known = shard.consumer(group.group_id)
        if known is None:
            assert not group.last, f"{machine.name} knows nothing of {group.group_id}, and its log does"
            return
        why = group.why_not_like(known)
        assert why is None, f"{machine.name}: {why}"

    def is_written(
        self,
        machine: Machine,
        request: ConsumerGroupHeartbeatRequest,
        answer: ConsumerGroupHeartbeatResponse,
        group: Consumers,
        committed: int,
    ) -> None:
        # An answer may be late: the group has ended since, or become a classic one.
        rows: list[Said | None] = [*group.has_said(request.member_id)]
        rows += [gone.last for gone in group.gone if gone.member_id == request.member_id]
        if request.member_epoch == LEAVES:
            there = any(gone.member_id == request.member_id and gone.offset < committed for gone in group.gone)
            assert there or group.ended_at >= 0, (
                f"{machine.name} lets {request.member_id} go, and that is not committed"
            )
            return
        epoch = answer.member_epoch
        given = None if answer.assignment is None else flat(answer.assignment.topic_partitions)
        assert any(
            row is not None
            and row.offset < committed
            and row.epoch == epoch
            and (given is None or row.assigned == given)
            for row in rows
        ), f"{machine.name} answers epoch {epoch} and {given} to {request.member_id}, and that is not committed"

    def promises(self, whom: Whom, given: frozenset[At], members: set[str]) -> None:
        holders = self.holders.setdefault(whom[0], {})
        for at in sorted(given):
            holder = holders.get(at)
            assert holder in (None, whom[1]) or holder not in members, (
                f"{at} of {whom[0]} is promised to {whom[1]}, and {holder} has not given it back"
            )
            holders[at] = whom[1]

    # --- epochs

    def epoch_grows(self, machine: Machine, group: Consumers, committed: int) -> None:
        epoch, known = group.reached_below(committed), self.epochs.get(group.group_id, 0)
        assert epoch >= known or group.ended_at >= 0, (
            f"{machine.name} has reached epoch {epoch} of {group.group_id}, which was in {known}"
        )
        self.epochs[group.group_id] = epoch

    def member_grows(self, whom: Whom, answer: ConsumerGroupHeartbeatResponse, group: Consumers) -> None:
        known = self.member_epochs.get(whom, 0)
        assert answer.member_epoch >= known or group.ended_at >= 0, (
            f"{whom[1]} is told that it is in epoch {answer.member_epoch} of {whom[0]}, and it was in {known}"
        )
        self.member_epochs[whom] = answer.member_epoch

    # --- who is taken out

    def judge(self, machine: Machine, group: Consumers, start: int) -> None:
        heard = self.heard_by(machine)
        judged = max(heard.judged.get(group.group_id, 0), start)
        for gone in group.gone:
            if gone.offset >= judged:
                why = self.why_kept(machine, heard, group, gone, start)
                assert why is None, f"{machine.name} takes {gone.member_id} out of {group.group_id}, {why}"
                judged = gone.offset + 1
        heard.judged[group.group_id] = judged

    def why_kept(self, machine: Machine, heard: Heard, group: Consumers, gone: Gone, start: int) -> str | None:
        whom = group.group_id, gone.member_id
        instance = gone.instance_id
        if whom in heard.leaving or (instance is not None and (group.group_id, instance) in heard.leaving):
            return None
        if gone.last is not None and gone.last.epoch == BE_BACK:
            return None  # it has said so; it is replaced, or its session was over
        since = self.since(machine, group)
        silent_ms = gone.time - max(heard.members.get(whom, 0), since)
        session_ms = gone.session_ms or machine.config.integer("group.consumer.session.timeout.ms")
        if silent_ms >= session_ms:
            return None
        if instance is not None and group.may_be_replaced(gone, instance):
            return None
        if gone.is_classic and heard.is_late(whom, gone, since):
            return None
        last = gone.last
        if last is not None and last.state == UNREVOKED:
            asked = last.time if last.offset >= start else since  # an earlier coordinator had another clock
            if gone.time - asked >= gone.patience_ms:
                return None
        return f"which is silent for {silent_ms} ms of {session_ms}"

    def since(self, machine: Machine, group: Consumers) -> int:
        topic = self.world.committed.image.topic_named(OFFSETS_TOPIC)
        assert topic is not None
        known = self.heard_by(machine).since.get(partition_for(group.group_id, len(topic.partitions)))
        return 0 if known is None else known[1]
