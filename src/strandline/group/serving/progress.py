"""How far a group of the classic protocol is: what an operator asks if it does not go on."""

from strandline.base.time import NEVER, Instant
from strandline.group.classic.group import Group
from strandline.group.classic.member import Member
from strandline.wire.messages.groups.describe_groups import GroupProgress, MemberDeparture, MemberProgress


def progress_of(group: Group, now: Instant) -> GroupProgress:
    """Times are spans, so that nobody compares clocks."""
    return GroupProgress(
        generation=group.generation,
        in_state_ms=max(now - group.since, 0),
        phase_left_ms=left(group.phase_ends, now),
        leader=group.leader,
        promised=len(group.pending),
        members=tuple(of_member(member, now) for member in group.members.values()),
        departures=tuple(
            MemberDeparture(
                member_id=one.member_id,
                client_id=one.client_id,
                client_host=one.client_host,
                ago_ms=max(now - one.at, 0),
                why=one.why,
            )
            for one in group.departures
        ),
    )


def of_member(member: Member, now: Instant) -> MemberProgress:
    waits_for = "join" if member.joining is not None else "sync" if member.syncing is not None else ""
    return MemberProgress(
        member_id=member.member_id,
        waits_for=waits_for,
        session_left_ms=-1 if member.is_parked else left(member.session_ends, now),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
    )


def left(ends: Instant, now: Instant) -> int:
    return -1 if ends == NEVER else max(ends - now, 0)
