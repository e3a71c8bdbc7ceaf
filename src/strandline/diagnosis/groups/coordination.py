"""Why a group does not get an answer from its coordinator, or does not get out of a rebalance."""

from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC
from strandline.client.admin.groups.described import AWAY, EMPTY, GroupState, Member
from strandline.client.brokers import Silence
from strandline.diagnosis.groups.facts import GroupFacts, count, listed, named, poll_interval, span
from strandline.diagnosis.situation import Finding, WayOut
from strandline.wire.messages.consumer_groups.progress import GroupProgress, MemberDeparture, MemberProgress

RECENT_MS = 600_000  # removals of members that count
AGAIN_AND_AGAIN = 3
JOIN, SYNC = "join", "sync"
LEFT = "left"


# --- the coordinator


def judge_coordinator(facts: GroupFacts) -> tuple[Finding, ...]:
    """Nothing: it describes the group."""
    answer, node = facts.answer, facts.coordinator
    if isinstance(answer, GroupState):
        return ()
    if isinstance(answer, Silence):
        why = (f"broker {node} coordinates it, and {answer.why}",)
        waits_for = f"broker {node} to answer, or another broker to lead {kept_in(facts)}"
        return (Finding("its coordinator does not answer", why, waits_for, is_missing=True, ways=explained(facts)),)
    if answer is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        why = (f"broker {node} leads {kept_in(facts)}, and reads it, or waits until its damage there is repaired",)
        waits_for = f"broker {node} to have read {kept_in(facts)}"
        return (Finding("its coordinator is loading", why, waits_for, is_missing=True, ways=explained(facts)),)
    if answer is ErrorCode.NOT_COORDINATOR:
        why = (f"broker {node} does not coordinate it any more",)
        return (Finding("its coordinator has moved", why, "the next coordinator: repeat the command", is_missing=True),)
    return (without_coordinator(facts, answer),)


def without_coordinator(facts: GroupFacts, answer: ErrorCode) -> Finding:
    keeper, what = facts.keeper, "it has no coordinator"
    if keeper is None:
        why = f"topic {OFFSETS_TOPIC}, which keeps groups, does not exist yet"
        return Finding(what, (why,), "the first consumer of any group: the topic is created for it")
    if keeper.is_unavailable:
        why = f"{keeper.at} keeps it, and has no leader that is online; so its members can neither join nor commit"
        return Finding(what, (why,), f"a leader of {keeper.at}", True, ways=explained(facts))
    why = f"broker {keeper.leader} leads {keeper.at}, which keeps it; FindCoordinator answers {answer.name}"
    return Finding(what, (why,), "a coordinator: repeat the command", is_missing=True, ways=explained(facts))


def kept_in(facts: GroupFacts) -> str:
    return OFFSETS_TOPIC if facts.keeper is None else str(facts.keeper.at)


def explained(facts: GroupFacts) -> tuple[WayOut, ...]:
    if facts.keeper is None:
        return ()
    at = facts.keeper.at
    what = f"find out what {at} waits for"
    return (WayOut(what, "none", f"strandline explain {at.topic}:{at.partition}{facts.options}"),)


# --- members that come and go


def judge_membership(facts: GroupFacts, state: GroupState) -> tuple[Finding, ...]:
    match state.state:
        case "Empty":
            return (empty(facts, state),)
        case "PreparingRebalance":
            return (joining(state),)
        case "CompletingRebalance":
            return (assigning(facts, state),)
    return ()


def empty(facts: GroupFacts, state: GroupState) -> Finding:
    assert state.state == EMPTY and not state.members
    moved = facts.moved()
    if moved:
        why = "a client commits offsets for it without being a member: it assigns partitions to itself"
        return Finding("it has no members, and goes on", (why,), "")
    since = "" if state.progress is None else f" for {span(state.progress.in_state_ms)}"
    gone = [departure(state, one) for one in reversed(departures(state.progress))]
    behind = f"it is {count(facts.lag, 'offset')} behind, and nobody reads"
    return Finding(
        f"it has no members{since}",
        (*gone, behind) if facts.lag else tuple(gone),
        "a consumer to join it",
        needs_action=facts.lag > 0,
    )


def joining(state: GroupState) -> Finding:
    """A rebalance waits for all members to rejoin, or for their time to be up."""
    progress = state.progress
    what = "it is rebalancing: its members join"
    if progress is None:
        return Finding(what, (f"it has {count(len(state.members), 'member')}",), "members to rejoin", is_missing=True)
    late = [member for member in state.members if waiting(progress, member) != JOIN]
    why = [f"since {span(progress.in_state_ms)}; {count(len(state.members) - len(late), 'member')} joined"]
    why += cause(progress)
    why += [late_words(progress, member) for member in late[:5]]
    if progress.promised:
        why.append(f"{count(progress.promised, 'client')} got a member id, and did not come back with it yet")
    why += [departure(state, one) for one in reversed(departures(progress))]
    ends = f"for at most {span(progress.phase_left_ms)}" if progress.phase_left_ms >= 0 else "until it joins"
    if late:
        waits_for = f"{named(late)} to rejoin, {ends}; then who has not rejoined is removed"
    elif progress.promised:
        waits_for = f"clients to join with their ids, {ends}"
    else:
        waits_for = f"more members, {ends} (group.initial.rebalance.delay.ms)"
    return Finding(what, tuple(why), waits_for)


def cause(progress: GroupProgress) -> list[str]:
    return [f"the cause: {progress.cause}"] if progress.cause else []


def late_words(progress: GroupProgress, member: Member) -> str:
    row = of_member(progress, member)
    if row is None:
        return f"{member.named} has not rejoined"
    lives = (
        f"its session ends in {span(row.session_left_ms)} unless it sends a heartbeat"
        if row.session_left_ms >= 0
        else "its process waits for an answer"
    )
    limit = f"{span(row.rebalance_timeout_ms)} (max.poll.interval.ms)"
    return f"{member.named} has not rejoined: a client rejoins with its next poll, and may take {limit}; {lives}"


def assigning(facts: GroupFacts, state: GroupState) -> Finding:
    """The members' leader computes the assignment; then it must be committed."""
    progress = state.progress
    what = "it is rebalancing: its leader assigns partitions"
    if progress is None:
        return Finding(what, (), "the leader's assignment", is_missing=True)
    why = [f"since {span(progress.in_state_ms)}, generation {progress.generation}", *cause(progress)]
    leader = next((member for member in state.members if member.member_id == progress.leader), None)
    if leader is not None and waiting(progress, leader) != SYNC:
        why.append(f"{leader.named} leads the members, and has not sent an assignment")
        ends = f", for at most {span(progress.phase_left_ms)}" if progress.phase_left_ms >= 0 else ""
        return Finding(what, tuple(why), f"the assignment of {leader.named}{ends}; then it is removed")
    why.append(f"the assignment is there, and its record in {kept_in(facts)} is not committed")
    keeper = facts.keeper
    is_stuck = keeper is not None and keeper.is_under_min_isr
    ways = explained(facts)
    return Finding(what, tuple(why), f"replicas of {kept_in(facts)}", is_stuck, ways=ways if is_stuck else ())


def judge_removed(state: GroupState) -> tuple[Finding, ...]:
    """Members that are removed again and again make a rebalance that never ends."""
    if state.state == EMPTY:
        return ()  # said there
    recent = [one for one in departures(state.progress) if one.ago_ms <= RECENT_MS]
    forced = [one for one in recent if is_forced(one) or is_back(state, one)]
    if not forced:
        return coming_and_going(state, recent)
    advice = "a consumer may work too long between two polls: raise max.poll.interval.ms, or lower max.poll.records"
    why = (*(departure(state, one) for one in reversed(forced)), advice)
    what = f"{count(len(forced), 'member')} dropped out within {span(RECENT_MS)}, and each time the group rebalanced"
    return (Finding(what, why, needs_action=len(forced) >= AGAIN_AND_AGAIN),)


def coming_and_going(state: GroupState, recent: list[MemberDeparture]) -> tuple[Finding, ...]:
    if len(recent) < AGAIN_AND_AGAIN:
        return ()
    client = "librdkafka" if state.epoch is None else "a client of the consumer protocol"
    hint = f"{client} also leaves, and gives no reason, if max.poll.interval.ms is exceeded"
    why = (*(departure(state, one) for one in reversed(recent)), hint)
    what = f"{count(len(recent), 'member')} left within {span(RECENT_MS)}, and each time the group rebalanced"
    return (Finding(what, why),)


def departures(progress: GroupProgress | None) -> tuple[MemberDeparture, ...]:
    return () if progress is None else progress.departures


def departure(state: GroupState, one: MemberDeparture) -> str:
    host = one.client_host.removeprefix("/")
    text = f"{one.member_id} (client {one.client_id} at {host}) {one.why}, {span(one.ago_ms)} ago"
    if one.why != LEFT:
        return text
    limit = poll_interval(one.rebalance_timeout_ms)
    if is_back(state, one):
        return f"{text}, and joined again with this id: it was not closed, but exceeded its {limit}, or unsubscribed"
    if 0 <= one.rebalance_timeout_ms <= one.committed_ms:
        return f"{text}, and {span(one.committed_ms)} after its last commit: perhaps it exceeded its {limit}"
    return text


def is_back(state: GroupState, one: MemberDeparture) -> bool:
    """In the consumer protocol a client keeps its member id until it is closed."""
    if one.why != LEFT or state.epoch is None:
        return False
    later = {other.member_id for other in departures(state.progress) if other.ago_ms < one.ago_ms}
    return one.member_id in later | {member.member_id for member in state.members}


def is_forced(one: MemberDeparture) -> bool:
    """Java's client says in its farewell that its poll interval is exceeded (KIP-800)."""
    return not one.why.startswith(LEFT) or "poll timeout" in one.why


def waiting(progress: GroupProgress, member: Member) -> str:
    row = of_member(progress, member)
    return "" if row is None else row.waits_for


def of_member(progress: GroupProgress, member: Member) -> MemberProgress | None:
    return next((row for row in progress.members if row.member_id == member.member_id), None)


# --- the consumer protocol


def judge_unrevoked(state: GroupState) -> tuple[Finding, ...]:
    """A partition moves when the member that has it has revoked it. Until then that member stays in an older epoch."""
    if state.epoch is None:
        return ()
    away = [member for member in state.members if member.epoch == AWAY]
    owners = state.owners()
    late = [member for member in state.members if member.epoch is not None and AWAY < member.epoch < state.epoch]
    wanted = {at: member for member in state.members for at in member.target or () if owners.get(at) is not member}
    if not late and not wanted:
        return waiting_for_return(state, away)
    why = [] if state.progress is None else [f"since {span(state.progress.in_state_ms)}"]
    for at, member in sorted(wanted.items(), key=lambda row: row[0])[:5]:
        owner = owners.get(at)
        has = "no member says that it has it" if owner is None else f"{owner.named} has not revoked it"
        why.append(f"{at} is to go to {member.named}: {has}")
    why += [f"{member.named} is in epoch {member.epoch}, the group in {state.epoch}" for member in late[:5]]
    holders = {owner.member_id: owner for at in wanted if (owner := owners.get(at)) is not None}
    whom = late or [owner for owner in holders.values() if owner.epoch != AWAY]
    moving = listed([str(at) for at in sorted(wanted)])
    what = f"partitions are on their way: {moving}" if wanted else "members have not taken the latest assignment"
    return (Finding(what, tuple(why), revocation_of(state, whom)), *waiting_for_return(state, away))


def revocation_of(state: GroupState, whom: list[Member]) -> str:
    """What the group waits for."""
    if not whom:
        return "the members' next heartbeats"
    rows = [] if state.progress is None else [of_member(state.progress, member) for member in whom]
    ends = [row.revoke_left_ms for row in rows if row is not None and row.revoke_left_ms >= 0]
    limit = f", for at most {span(max(ends))} (max.poll.interval.ms); then who has not is removed" if ends else ""
    return f"{named(whom)} to poll, and to revoke{limit}"


def waiting_for_return(state: GroupState, away: list[Member]) -> tuple[Finding, ...]:
    """Static members that have left keep their partitions until their sessions end."""
    found = []
    for member in away:
        row = None if state.progress is None else of_member(state.progress, member)
        ends = "" if row is None or row.session_left_ms < 0 else f" in {span(row.session_left_ms)}"
        kept = listed([str(at) for at in member.assigned])
        why = [f"{kept} {'waits' if len(member.assigned) == 1 else 'wait'} for it, and nobody reads"] if kept else []
        if row is not None:
            limit = poll_interval(row.rebalance_timeout_ms)
            why.append(f"it was closed, or exceeded its {limit}: then it comes back with its next poll")
        waits_for = f"a consumer with group.instance.id={member.instance_id}, or the end of its session{ends}"
        found.append(Finding(f"{member.named} has left, and will be back", tuple(why), waits_for))
    return tuple(found)
