"""How far a group is: what an operator asks if it does not go on."""

from strandline.base.time import NEVER, Instant
from strandline.group.classic.group import Group
from strandline.group.classic.member import Member
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.timers import REBALANCE, SESSION, Timers
from strandline.group.departures import Departure, Departures
from strandline.wire.messages.consumer_groups.progress import GroupProgress, MemberDeparture, MemberProgress


def progress_of(group: Group, now: Instant) -> GroupProgress:
    """Times are spans, so that nobody compares clocks."""
    return GroupProgress(
        generation=group.generation,
        in_state_ms=max(now - group.since, 0),
        phase_left_ms=left(group.phase_ends, now),
        leader=group.leader,
        promised=len(group.pending),
        members=tuple(of_member(member, group.departures, now) for member in group.members.values()),
        departures=tuple(of_departure(one, now) for one in group.departures.latest),
        cause=group.cause,
    )


def consumer_progress_of(group: ConsumerGroup, timers: Timers, now: Instant) -> GroupProgress | None:
    """`timers`: of the group's shard. None: the group is loaded, and its members' sessions have not begun yet."""
    since = group.history.since
    if since is None:
        return None

    def of_consumer(member_id: str, rebalance_timeout_ms: int) -> MemberProgress:
        session, revoking = (timers.ends.get((kind, group.group_id, member_id), NEVER) for kind in (SESSION, REBALANCE))
        return MemberProgress(
            member_id=member_id,
            session_left_ms=left(session, now),
            rebalance_timeout_ms=rebalance_timeout_ms,
            revoke_left_ms=left(revoking, now),
            committed_ms=elapsed(group.history.departures.commits.get(member_id), now),
        )

    return GroupProgress(
        generation=group.epoch,
        in_state_ms=max(now - since, 0),
        members=tuple(of_consumer(m.member_id, m.rebalance_timeout_ms) for m in group.members.values()),
        departures=tuple(of_departure(one, now) for one in group.history.departures.latest),
    )


def of_departure(one: Departure, now: Instant) -> MemberDeparture:
    return MemberDeparture(
        member_id=one.member_id,
        client_id=one.client_id,
        client_host=one.client_host,
        ago_ms=max(now - one.at, 0),
        why=one.why,
        committed_ms=elapsed(one.committed, one.at),
        rebalance_timeout_ms=one.rebalance_timeout_ms,
    )


def of_member(member: Member, departures: Departures, now: Instant) -> MemberProgress:
    waits_for = "join" if member.joining is not None else "sync" if member.syncing is not None else ""
    return MemberProgress(
        member_id=member.member_id,
        waits_for=waits_for,
        session_left_ms=-1 if member.is_parked else left(member.session_ends, now),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        committed_ms=elapsed(departures.commits.get(member.member_id), now),
    )


def elapsed(then: Instant | None, now: Instant) -> int:
    return -1 if then is None else max(now - then, 0)


def left(ends: Instant, now: Instant) -> int:
    return -1 if ends == NEVER else max(ends - now, 0)
