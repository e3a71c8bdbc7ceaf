"""What a coordinator promises to members that speak the classic protocol, in groups of either protocol (KIP-848).

Partitions have one holder in a group, whatever protocol it speaks at the moment, and whatever its members speak
(`promises.py`). A member of the classic protocol says what it still owns when it joins: nothing, if it consumes
eagerly. SyncGroup promises what it is assigned; in a consumer group that is written in the member's epoch, and
committed.

Only members with real subscriptions are looked at: those of other workloads have texts of their own.
"""

from typing import Any

from strandline.base.effects import Received, Reply
from strandline.base.errors import ErrorCode
from strandline.sim.laws.clients.consumers import At, Consumers, by_id, given_by
from strandline.sim.laws.clients.groups import Groups
from strandline.sim.laws.clients.promises import Promises, Whom
from strandline.sim.world.machine import Machine
from strandline.wire.compress import Corrupt
from strandline.wire.messages.groups.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_embedded,
)
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest
from strandline.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

HEARD = (JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest)
Asked = tuple[str, int, int, int]  # machine, its life, connection and sequence


class Classics:
    HEARS = tuple((Received, request) for request in HEARD)
    ANSWERS = (JoinGroupResponse, SyncGroupResponse, HeartbeatResponse)

    def __init__(self, groups: Groups, promises: Promises) -> None:
        self.groups = groups
        self.promises = promises
        self.real: set[str] = set()  # groups whose members have real subscriptions
        self.asked: dict[Asked, tuple[Any, int]] = {}
        self.newest: dict[Whom, Asked] = {}
        self.joined: dict[Whom, int] = {}  # the generation that each was told last

    def forget(self, machine: Machine) -> None:
        for asked in [asked for asked in self.asked if asked[0] == machine.name]:
            del self.asked[asked]

    def received(self, machine: Machine, event: Any) -> None:
        request, group = event.message, event.message.group_id
        owned = self.owned_by(machine, request) if type(request) is JoinGroupRequest else None
        if group not in self.real:
            return
        if owned is not None:
            self.promises.gives_back((group, request.member_id), owned)
        leads = self.promises.leads(machine, group) is not None
        if type(request) is LeaveGroupRequest:
            for identity in request.members:
                self.promises.gives_back((group, identity.member_id), frozenset())
                if leads:
                    self.promises.heard_by(machine).leaving.add((group, identity.member_id))
        if not leads or type(request) is LeaveGroupRequest:
            return
        which = machine.name, machine.life, event.to.connection, event.to.sequence
        self.asked[which] = request, machine.clock.now()
        self.newest[group, request.member_id] = which
        if type(request) is JoinGroupRequest:
            self.promises.heard_by(machine).must_sync[group, request.member_id].append(machine.clock.now())

    def owned_by(self, machine: Machine, request: JoinGroupRequest) -> frozenset[At] | None:
        try:
            said = decode_embedded(ConsumerProtocolSubscription, request.protocols[0].metadata)
        except (Corrupt, IndexError):
            return None
        self.real.add(request.group_id)
        assert machine.node is not None
        return by_id(machine.node.image, said.owned_partitions)

    def replies(self, machine: Machine, reply: Reply) -> None:
        which = machine.name, machine.life, reply.to.connection, reply.to.sequence
        request, at_ms = self.asked.pop(which, (None, 0))
        answer: Any = reply.message
        if request is None or self.promises.leads(machine, request.group_id) is None:
            return
        whom = request.group_id, answer.member_id if type(request) is JoinGroupRequest else request.member_id
        heard = self.promises.heard_by(machine)
        must_join = type(request) is not JoinGroupRequest and answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        if must_join:
            heard.must_join[whom].append(machine.clock.now())
        if not answer.error_code or (must_join and type(request) is HeartbeatRequest):
            heard.members[whom] = max(heard.members.get(whom, 0), at_ms)
        if answer.error_code:
            return
        if type(request) is JoinGroupRequest:
            self.joined[whom] = answer.generation_id
            heard.must_join[whom] = [told for told in heard.must_join[whom] if told >= at_ms]
            if whom[1] != request.member_id:
                heard.must_sync[whom].append(at_ms)
        if type(request) is SyncGroupRequest:
            heard.must_sync[whom] = [asked for asked in heard.must_sync[whom] if asked >= at_ms]
            self.assigns(machine, request, answer, is_newest=self.newest.get(whom) == which)
        if type(request) is HeartbeatRequest:
            self.is_content(machine, request)

    def is_content(self, machine: Machine, request: HeartbeatRequest) -> None:
        """The member has what it is to have, or waits for others."""
        found = self.groups.log_of(machine, request.group_id)
        group = None if found is None else found[0].consumers.get(request.group_id)
        if group is None or request.member_id not in group.members():
            return
        assert machine.node is not None
        why = group.why_rejoin(request.member_id, machine.node.image.topics)
        assert why is None, f"{machine.name} does not tell {request.member_id} of {group.group_id} to join, {why}"

    def assigns(
        self, machine: Machine, request: SyncGroupRequest, answer: SyncGroupResponse, *, is_newest: bool
    ) -> None:
        found, whom = self.groups.log_of(machine, request.group_id), (request.group_id, request.member_id)
        if found is None:
            self.promises.holders.pop(request.group_id, None)
            return
        assert machine.node is not None
        image = machine.node.image
        replayed, committed, start = found
        group = replayed.consumers.get(request.group_id) or Consumers(request.group_id)
        assignment = bytes(answer.assignment)
        given = given_by(assignment, image)
        classic = replayed.groups.get(request.group_id)
        members = group.members()
        if classic:
            members = {member.member_id for member in classic[-1][1].members} & self.of_generation(request)
        if not classic:
            self.promises.compare(machine, group)
            self.promises.judge(machine, group, start)
            epoch = request.generation_id
            assert group.has_assigned(whom[1], epoch, assignment, committed, image), (
                f"{machine.name} assigns {sorted(given)} to {whom[1]} in generation {epoch} of {whom[0]}, and that is"
                " not written"
            )
        if is_newest:
            self.promises.promises(whom, given, members)

    def of_generation(self, request: SyncGroupRequest) -> set[str]:
        """A classic group goes on without those who have not joined in time. A static one is still a member then, of an
        earlier generation that is fenced."""
        now = request.group_id, request.generation_id
        return {member_id for (group, member_id), generation in self.joined.items() if (group, generation) == now}
