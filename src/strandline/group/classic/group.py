"""One consumer group of the classic protocol: who is in it, and who gets what (the rebalance protocol).

States: Empty → PreparingRebalance (members join) → CompletingRebalance (the leader computes the assignment) → Stable,
and back to PreparingRebalance whenever the membership changes (`TRANSITIONS`). The group decides, and `membership.py`
writes what must survive.

Invariants (executed by `check`):
  - the leader is a member, or there is none; a group with members has a leader once it has a generation
  - generations only grow
  - nobody is parked in a sync outside CompletingRebalance, nor in a join outside PreparingRebalance
"""

from collections.abc import Callable, Collection
from enum import Enum
from functools import partial

from strandline.base.effects import Effect, Reply, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.time import NEVER, Instant
from strandline.base.timers import Deadline, Timers
from strandline.group.classic.member import Member
from strandline.group.classic.voting import Support, vote
from strandline.group.config import GroupConfig
from strandline.group.departures import Departures, said
from strandline.wire.messages.groups.join_group import JoinGroupResponse, JoinGroupResponseMember
from strandline.wire.messages.groups.sync_group import SyncGroupResponse

SKIP_ASSIGNMENT = 9  # the JoinGroup version that has the field


class State(Enum):
    EMPTY = "Empty"  # it has no members, and perhaps committed offsets
    PREPARING_REBALANCE = "PreparingRebalance"  # members join
    COMPLETING_REBALANCE = "CompletingRebalance"  # the leader computes the assignment, and it is written
    STABLE = "Stable"  # every member has its assignment
    DEAD = "Dead"  # another broker coordinates it from now on


# Which state may follow which.
TRANSITIONS: dict[State, tuple[State, ...]] = {
    State.EMPTY: (State.PREPARING_REBALANCE, State.DEAD),
    State.PREPARING_REBALANCE: (State.COMPLETING_REBALANCE, State.EMPTY, State.DEAD),
    State.COMPLETING_REBALANCE: (State.STABLE, State.PREPARING_REBALANCE, State.DEAD),
    State.STABLE: (State.PREPARING_REBALANCE, State.DEAD),
    State.DEAD: (),
}


class Group:
    def __init__(
        self,
        group_id: str,
        config: GroupConfig,
        now: Instant,
        timers: Timers,
        expired: Callable[["Group", Instant], list[Effect]] = lambda group, now: [],
    ) -> None:
        """`expired`: time has changed the group, in one of its `timers`."""
        self.group_id = group_id
        self.config = config
        self.timers = timers
        self.expired = expired
        self.state = State.EMPTY
        self.since = now  # when the state was entered
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}  # group.instance.id → member id
        self.support = Support()
        self.joined = 0  # members whose JoinGroup is parked
        self.pending: dict[str, Deadline] = {}  # ids handed out and not joined yet
        self.phase_ends: Instant = NEVER  # of the join phase or of the sync phase
        self.phase = Deadline(timers, self.phase_due)
        self.departures = Departures()
        self.cause = ""  # of the last rebalance: a sentence
        self.first_join_ends: Instant = NEVER  # the latest end of an empty group's first join phase

    def restore(self, members: list[Member], leader: str | None, since: Instant) -> None:
        """As the group's last record left it. See `begin_sessions`."""
        assert self.state is State.EMPTY and not self.members, "a group is restored before anybody joins"
        for member in members:
            self.admit(member)
        assert len(self.members) == len(members), "each has an id of its own"
        known = leader in self.members  # another writer's record may name a leader that is gone
        self.leader = leader if known else next(iter(self.members), None)
        self.state, self.since = State.STABLE if self.members else State.EMPTY, since

    def begin_sessions(self, now: Instant) -> None:
        """The group is coordinated here from now on: those who have not come yet have a whole session to show up."""
        for member in self.members.values():
            if member.session_ends == NEVER and not member.is_parked:
                member.heard(now)

    def admit(self, member: Member) -> None:
        self.members[member.member_id] = member
        self.support.add(member.protocols)
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        member.session = Deadline(self.timers, partial(self.session_due, member))
        member.session.set(member.session_ends)

    # --- joining

    def why_not_join(self, member_id: str, protocol_type: str, protocols: Collection[str]) -> ErrorCode | None:
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not protocol_type or not protocols:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if not self.is_fitting(member_id, protocol_type, protocols):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if member_id and member_id not in self.members and member_id not in self.pending:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member_id not in self.members and len(self.members) >= self.config.max_size:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        return None

    def is_fitting(self, member_id: str, protocol_type: str, protocols: Collection[str]) -> bool:
        """Do all other members support one of these?"""
        itself = self.members.get(member_id)
        if len(self.members) == (itself is not None):
            return True
        return protocol_type == self.protocol_type and self.support.is_fitting(
            protocols, without=None if itself is None else itself.protocols
        )

    def add(self, member: Member, protocol_type: str, to: ReplyTo, now: Instant) -> list[Effect]:
        """A new member joins; answered when the join phase ends."""
        assert member.member_id not in self.members
        assert member.joining is None
        self.withdraw(member.member_id)
        if not self.members:
            self.protocol_type = protocol_type
        self.admit(member)
        if self.leader is None:
            self.leader = member.member_id
        self.park(member, to)
        return self.prepare_rebalance(now, said(member, "joined"))

    def invite(self, member_id: str, ends: Instant) -> None:
        """The id is handed out, and counts as a member to come until `ends`."""
        assert member_id not in self.pending, "it is handed out once"
        assert member_id not in self.members, "an id is new"
        self.pending[member_id] = Deadline(self.timers, partial(self.invitation_due, member_id))
        self.pending[member_id].set(ends)

    def withdraw(self, member_id: str) -> bool:
        """Nobody comes with this id any more, or the member is there. Was it expected?"""
        invitation = self.pending.pop(member_id, None)
        if invitation is not None:
            invitation.end()
        return invitation is not None

    def park(self, member: Member, to: ReplyTo) -> None:
        assert member.joining is None and self.members.get(member.member_id) is member
        member.joining = to
        self.joined += 1

    def rejoin(self, member: Member, asked: Member, to: ReplyTo, now: Instant) -> list[Effect]:
        """A known member joins again, now as `asked`: a rebalance if its subscription changed, else its current
        generation once more."""
        assert self.members.get(member.member_id) is member
        changed = list(asked.protocols.items()) != list(member.protocols.items())  # their order is the preference
        self.change_protocols(member, asked.protocols)
        member.session_timeout_ms = asked.session_timeout_ms
        member.rebalance_timeout_ms = asked.rebalance_timeout_ms
        has_generation = self.state in (State.STABLE, State.COMPLETING_REBALANCE)
        leads_stable = self.state is State.STABLE and member.member_id == self.leader
        if has_generation and not changed and not leads_stable:
            member.heard(now)
            return [Reply(to, self.join_answer(member))]
        effects = self.release_join(member, ErrorCode.UNKNOWN_MEMBER_ID)  # an older request of the same member
        self.park(member, to)
        why = "joined with another subscription" if changed else "joined again"
        return effects + self.prepare_rebalance(now, said(member, f"{why}: {asked.reason}" if asked.reason else why))

    def change_protocols(self, member: Member, protocols: dict[str, bytes]) -> None:
        assert protocols, "who supports none is refused"
        self.support.remove(member.protocols)
        self.support.add(protocols)
        member.protocols = protocols

    def can_swap_quietly(self, old: Member, new: Member) -> bool:
        """Would the group assign the same with `new` in the place of `old`? Compared is the chosen protocol's
        subscription only: a coordinator that has just loaded the group knows no other."""
        assert self.members.get(old.member_id) is old
        if self.state is not State.STABLE or self.protocol is None or self.protocol not in new.protocols:
            return False
        after = [new if m is old else m for m in self.members.values()]
        same = new.protocols[self.protocol] == old.protocols.get(self.protocol)
        return same and vote(after) == self.protocol

    def replace_static(self, old: Member, new: Member, now: Instant) -> list[Effect]:
        """A static member came back under a new member id (KIP-345) and takes over the old one's place."""
        assert self.members.get(old.member_id) is old
        assert new.member_id not in self.members
        assert new.instance_id is not None
        effects = self.release_join(old, ErrorCode.FENCED_INSTANCE_ID) + self.release_sync(
            old, ErrorCode.FENCED_INSTANCE_ID
        )
        new.assignment = old.assignment
        self.dismiss(old)
        self.members = {(new if m is old else m).member_id: (new if m is old else m) for m in self.members.values()}
        self.admit(new)
        if self.leader == old.member_id:
            self.leader = new.member_id
        new.heard(now)
        return effects

    def join_replaced(self, new: Member, to: ReplyTo, now: Instant) -> list[Effect]:
        """The replacement changes what the group would assign, so everybody joins again."""
        assert self.members.get(new.member_id) is new
        self.park(new, to)
        return self.prepare_rebalance(now, said(new, f"came back as instance {new.instance_id}"))

    def prepare_rebalance(self, now: Instant, why: str = "") -> list[Effect]:
        """`why`: a sentence."""
        assert self.state is not State.DEAD
        effects: list[Effect] = []
        was = self.state
        self.cause = self.cause if was is State.PREPARING_REBALANCE else why
        if was is State.COMPLETING_REBALANCE:
            for member in self.members.values():
                effects += self.release_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
                member.heard(now)
        if was is State.EMPTY and self.config.initial_rebalance_delay_ms > 0:
            # An empty group waits a little for its other members, and longer while more of them arrive.
            longest = self.longest_rebalance_ms()
            self.first_join_ends = Instant(now + longest)
            self.end_phase_at(Instant(now + min(self.config.initial_rebalance_delay_ms, longest)))
        elif was is not State.PREPARING_REBALANCE:
            self.first_join_ends = NEVER
            self.end_phase_at(Instant(now + self.longest_rebalance_ms()))
        elif self.first_join_ends != NEVER:
            self.end_phase_at(min(Instant(now + self.config.initial_rebalance_delay_ms), self.first_join_ends))
        self.enter(State.PREPARING_REBALANCE, now)
        assert self.phase_ends != NEVER, "members that do not come would be waited for without end"
        return effects + self.end_join_if_complete(now)

    def longest_rebalance_ms(self) -> int:
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def end_phase_at(self, when: Instant) -> None:
        self.phase_ends = when
        self.phase.set(when)

    def end_join_if_complete(self, now: Instant) -> list[Effect]:
        waits_for_more = self.first_join_ends != NEVER and now < self.phase_ends
        everyone = self.joined == len(self.members) and not self.pending
        if self.state is not State.PREPARING_REBALANCE or waits_for_more:
            return []
        if not everyone and now < self.phase_ends:
            return []
        return self.end_join(now)

    def end_join(self, now: Instant) -> list[Effect]:
        """The join phase is over: those who did not come are out, the others form the next generation."""
        assert self.state is State.PREPARING_REBALANCE
        self.first_join_ends = NEVER
        for member in [m for m in self.members.values() if m.joining is None and m.instance_id is None]:
            self.forget(member, f"did not rejoin within {member.rebalance_timeout_ms} ms (max.poll.interval.ms)", now)
        joined = [m for m in self.members.values() if m.joining is not None]
        if self.members and not joined:  # only static members that are away: wait until they come or their sessions end
            self.end_phase_at(Instant(now + self.longest_rebalance_ms()))
            return []
        self.generation += 1
        assert self.first_join_ends == NEVER
        if not joined:
            self.protocol = None
            self.end_phase_at(NEVER)
            self.enter(State.EMPTY, now)
            return []
        if all(m.member_id != self.leader for m in joined):
            self.leader = joined[0].member_id  # a static leader that is away could not assign anything
        assert self.joined == len(joined)
        assert self.leader in self.members
        self.protocol = vote(list(self.members.values()))
        self.end_phase_at(Instant(now + self.longest_rebalance_ms()))
        self.enter(State.COMPLETING_REBALANCE, now)
        effects: list[Effect] = []
        for member in joined:
            assert member.joining is not None
            effects.append(Reply(member.joining, self.join_answer(member)))
            member.joining = None
            member.heard(now)
        self.joined = 0
        return effects

    def swap_answer(self, new: Member, old_leader: str | None, version: int) -> JoinGroupResponse:
        """What a static member gets that slipped back into a stable group. The leader must not assign again; before
        SkipAssignment existed it could be kept from that only by being told of another leader (KIP-814)."""
        assert self.members.get(new.member_id) is new
        if version >= SKIP_ASSIGNMENT:
            return self.join_answer(new, skip_assignment=True)
        return self.join_answer(new, leader=old_leader)

    def join_answer(
        self, member: Member, *, skip_assignment: bool = False, leader: str | None = None
    ) -> JoinGroupResponse:
        assert self.generation > 0
        assert self.protocol is not None
        leader = leader or self.leader
        leads = member.member_id == leader
        return JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=leader or "",
            skip_assignment=skip_assignment and leads,
            member_id=member.member_id,
            members=tuple(
                JoinGroupResponseMember(
                    member_id=m.member_id, group_instance_id=m.instance_id, metadata=m.protocols[self.protocol]
                )
                for m in self.members.values()
            )
            if leads
            else (),
        )

    # --- assignment

    def assign(self, assignments: dict[str, bytes]) -> None:
        assert self.state is State.COMPLETING_REBALANCE
        for member in self.members.values():
            member.assignment = assignments.get(member.member_id, b"")

    def become_stable(self, now: Instant) -> list[Effect]:
        assert self.state is State.COMPLETING_REBALANCE
        self.end_phase_at(NEVER)
        self.enter(State.STABLE, now)
        effects: list[Effect] = []
        for member in self.members.values():
            if member.syncing is not None:
                effects.append(Reply(member.syncing, self.sync_answer(member)))
                member.syncing = None
                member.heard(now)
        return effects

    def fail_sync(self, error: ErrorCode, now: Instant) -> list[Effect]:
        """The assignment could not be written: nobody gets it, and the group starts over."""
        assert self.state is State.COMPLETING_REBALANCE
        effects: list[Effect] = []
        for member in self.members.values():
            member.assignment = b""
            effects += self.release_sync(member, error)
        return effects + self.prepare_rebalance(now, "the assignment could not be written")

    def sync_answer(self, member: Member) -> SyncGroupResponse:
        assert self.state is State.STABLE and self.members.get(member.member_id) is member
        return SyncGroupResponse(
            error_code=ErrorCode.NONE,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            assignment=member.assignment,
        )

    # --- leaving

    def remove(self, member: Member, now: Instant, why: str = "left") -> list[Effect]:
        """The member left, or its session ended. `why` continues a sentence about it."""
        assert self.members.get(member.member_id) is member
        effects = self.release_join(member, ErrorCode.UNKNOWN_MEMBER_ID) + self.release_sync(
            member, ErrorCode.UNKNOWN_MEMBER_ID
        )
        self.forget(member, why, now)
        if self.state in (State.STABLE, State.COMPLETING_REBALANCE):
            return effects + self.prepare_rebalance(now, said(member, why))
        return effects + self.end_join_if_complete(now)

    def forget(self, member: Member, why: str, now: Instant) -> None:
        assert self.members.get(member.member_id) is member
        self.departures.add(member, why, now)
        self.dismiss(member)
        del self.members[member.member_id]
        if member.instance_id is not None and self.static.get(member.instance_id) == member.member_id:
            del self.static[member.instance_id]
        if self.leader == member.member_id:
            self.leader = next(
                (m.member_id for m in self.members.values() if m.joining is not None), next(iter(self.members), None)
            )

    def dismiss(self, member: Member) -> None:
        """It is, or will be, no member any more."""
        assert member.session is not None and member.joining is None
        member.session.end()
        member.session = None
        self.support.remove(member.protocols)

    def release_join(self, member: Member, error: ErrorCode) -> list[Effect]:
        assert error is not ErrorCode.NONE, "who joined gets another answer"
        to, member.joining = member.joining, None
        self.joined -= to is not None
        return [] if to is None else [Reply(to, JoinGroupResponse(error_code=error, member_id=member.member_id))]

    def release_sync(self, member: Member, error: ErrorCode) -> list[Effect]:
        assert error is not ErrorCode.NONE, "who is assigned something gets another answer"
        to, member.syncing = member.syncing, None
        return [] if to is None else [Reply(to, SyncGroupResponse(error_code=error))]

    def give_up(self) -> None:
        """Another broker coordinates this group from now on. `dissolve` has the rest to do."""
        self.enter(State.DEAD, self.since)

    def dissolve(self, error: ErrorCode) -> list[Effect]:
        """Whoever waits is sent away."""
        assert self.state is State.DEAD, "it is given up"
        effects: list[Effect] = []
        for member in self.members.values():
            effects += self.release_join(member, error) + self.release_sync(member, error)
        self.forget_time()
        return effects

    def forget_time(self) -> None:
        """Nothing of this group is due any more."""
        for member in self.members.values():
            assert member.session is not None
            member.session.end()
        for invitation in self.pending.values():
            invitation.end()
        self.phase.end()

    # --- who may speak

    def why_not(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode | None:
        """Why may this sender not act for the group in this generation? None means it may."""
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if instance_id is not None:
            current = self.static.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.ILLEGAL_GENERATION if generation != self.generation else None

    # --- time

    def enter(self, state: State, now: Instant) -> None:
        if state is not self.state:
            assert state in TRANSITIONS[self.state], f"{self.state.value} is never followed by {state.value}"
            self.state, self.since = state, now

    def invitation_due(self, member_id: str, now: Instant) -> list[Effect]:
        del self.pending[member_id]
        if self.state is State.DEAD:
            return []
        return self.end_join_if_complete(now) + self.expired(self, now)

    def session_due(self, member: Member, now: Instant) -> list[Effect]:
        """It was heard from since, perhaps."""
        assert self.members.get(member.member_id) is member and member.session is not None
        if member.is_parked or self.state is State.DEAD:
            return []  # with the answer a session begins
        if now < member.session_ends:
            member.session.set(member.session_ends)
            return []
        silent = f"sent no heartbeat for {member.session_timeout_ms} ms (session.timeout.ms)"
        return self.remove(member, now, silent) + self.expired(self, now)

    def phase_due(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        if now < self.phase_ends:
            self.phase.set(self.phase_ends)
            return []
        if self.state is State.PREPARING_REBALANCE:
            effects += self.end_join(now)
        elif self.state is State.COMPLETING_REBALANCE:
            for member in [m for m in self.members.values() if m.syncing is None]:
                waited_ms = max(m.rebalance_timeout_ms for m in self.members.values())
                self.forget(member, f"joined, and did not come for its assignment within {waited_ms} ms", now)
            effects += self.prepare_rebalance(now, "members did not come for their assignment")
        return effects + self.expired(self, now)

    def check(self) -> None:
        assert self.leader is None or self.leader in self.members
        assert self.leader is not None or not self.members, "somebody computes the assignment"
        assert all(member_id in self.members for member_id in self.static.values())
        assert not self.pending.keys() & self.members.keys()
        assert self.state is not State.EMPTY or not self.members
        assert self.state is not State.STABLE or self.members
        is_formed = self.state in (State.COMPLETING_REBALANCE, State.STABLE)
        assert not is_formed or (self.generation > 0 and self.protocol is not None)
        is_waiting = self.state in (State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE)
        assert is_waiting == (self.phase_ends != NEVER), "each phase of a rebalance ends"
        assert self.phase_ends == NEVER or self.phase.when <= self.phase_ends, "it is looked at in time"
        self.support.check([m.protocols for m in self.members.values()])
        assert self.joined == sum(m.joining is not None for m in self.members.values())
        for member_id, member in self.members.items():
            assert member.member_id == member_id
            assert member.session is not None
            assert member.is_parked or member.session.when <= member.session_ends, "it does not stay for ever"
            assert member.instance_id is None or self.static.get(member.instance_id) == member_id
            assert member.syncing is None or self.state is State.COMPLETING_REBALANCE
            assert member.joining is None or self.state is State.PREPARING_REBALANCE
