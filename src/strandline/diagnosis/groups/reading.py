"""Why a group that has members does not get on in its partitions: nobody reads them, they have no leader, a member does
not commit, records are gone, or a transaction is open."""

from strandline.client.admin.groups.described import EMPTY, GroupState, Member
from strandline.client.admin.groups.offsets import Ends, Position
from strandline.client.admin.partitions import Place
from strandline.diagnosis.groups.facts import WATCHED_S, GroupFacts, count, listed, places, poll_interval, span
from strandline.diagnosis.situation import Facts, Finding, WayOut
from strandline.diagnosis.transactions import judge_held
from strandline.wire.messages.consumer_groups.progress import MemberProgress


def judge_topics(facts: GroupFacts, state: GroupState) -> tuple[Finding, ...]:
    """Members subscribe to what does not exist, or nobody reads what they subscribe to."""
    found = []
    for topic in facts.unknown:
        who = [member.named for member in state.members if topic in member.subscribed]
        why = f"subscribed: {listed(who, '; ')}"
        create = WayOut(f"create topic {topic}", "none", f"strandline topics create {topic}{facts.options}")
        found.append(Finding(f"topic '{topic}' does not exist", (why,), "the topic", True, ways=(create,)))
    if state.state != "Stable":
        return tuple(found)
    found += matching_nothing(state)
    topics = {topic for member in state.members for topic in member.subscribed}
    unread = [at for at in facts.states if at.topic in topics and at not in state.owners()]
    if unread:
        why = (
            "the group is subscribed to their topics, and its assignor left them out: whoever assigned did not know"
            " these partitions"
        )
        waits_for = "members to see new partitions (metadata.max.age.ms, 5 min by default), and then a rebalance"
        found.append(Finding(f"nobody reads {places(unread)}", (why,), waits_for))
    return tuple(found)


def matching_nothing(state: GroupState) -> list[Finding]:
    """Nobody in the group has a partition, and no topic has the name of a subscription."""
    regexes = sorted({member.regex for member in state.members if member.regex})
    if not regexes or state.owners() or any(member.subscribed for member in state.members):
        return []
    what = f"no topic matches {listed([repr(regex) for regex in regexes])}"
    why = "an expression must match the whole name of a topic, and the member must have the right to describe it"
    return [Finding(what, (why,), "a topic that matches", needs_action=True)]


def judge_positions(facts: GroupFacts, state: GroupState) -> tuple[Finding, ...]:
    return (*leaderless(facts), *outside(facts, state), *silent(facts, state), *falling_behind(facts))


def leaderless(facts: GroupFacts) -> tuple[Finding, ...]:
    found = [at for position in facts.positions if is_leaderless(facts, at := position.at)]
    if not found:
        return ()
    look = [
        WayOut(
            f"find out why {at} has no leader", "none", f"strandline explain {at.topic}:{at.partition}{facts.options}"
        )
        for at in found[:5]
    ]
    what = f"{places(found)} cannot be read: no leader is online"
    return (Finding(what, (), "a leader", True, ways=tuple(look)),)


def is_leaderless(facts: GroupFacts, at: Place) -> bool:
    state = facts.states.get(at)
    return state is not None and state.is_unavailable


def outside(facts: GroupFacts, state: GroupState) -> tuple[Finding, ...]:
    """A committed offset that the log does not have: consumers go on where auto.offset.reset says."""
    found = []
    for position in facts.positions:
        committed, ends = position.committed, position.ends
        if committed is None or isinstance(ends, str):
            continue
        what = f"the committed offset {committed.offset} of {position.at} is"
        then = "a consumer goes on where auto.offset.reset says"
        if committed.offset < ends.start:
            gone = f"{count(ends.start - committed.offset, 'offset')} were deleted unread; {then}"
            found.append(
                Finding(
                    f"{what} below the log's start {ends.start}",
                    (gone,),
                    "",
                    state.state == EMPTY,
                    ways=(reset(facts, position),),
                )
            )
        elif committed.offset > ends.end:
            lost = WayOut(
                "see which records were lost",
                "none",
                f"strandline losses {position.at.topic}:{position.at.partition}{facts.options}",
            )
            why = f"the log has lost records that the group had read, or the offset was never there; {then}"
            found.append(Finding(f"{what} above the log's end {ends.end}", (why,), "", True, ways=(lost,)))
    return tuple(found)


def reset(facts: GroupFacts, position: Position) -> WayOut:
    at = position.at
    command = (
        f"strandline groups reset-offsets --group {facts.group_id} --topic {at.topic}:{at.partition} --to-earliest"
        f"{facts.options}"
    )
    return WayOut(
        "while the group has no members: plan to go on at the log's start", "none: what is deleted is gone", command
    )


def silent(facts: GroupFacts, state: GroupState) -> tuple[Finding, ...]:
    """Members that have something to read, and did not commit while they were watched."""
    if not facts.is_watched or state.state != "Stable":
        return ()
    moved, owners = facts.moved(), state.owners()
    by_member: dict[str, tuple[Member, list[Position]]] = {}
    for position in facts.positions:
        owner = owners.get(position.at)
        if owner is None or position.at in moved or waits(position) == 0 or is_leaderless(facts, position.at):
            continue
        if not is_held(position):
            by_member.setdefault(owner.member_id, (owner, []))[1].append(position)
    return tuple(stuck(state, member, rows) for member, rows in by_member.values())


def stuck(state: GroupState, member: Member, rows: list[Position]) -> Finding:
    why = [f"{row.at}: {count(waits(row), 'offset')} to read, {at_words(row)}" for row in rows[:5]]
    members = state.progress.members if state.progress else ()
    known = next((row for row in members if row.member_id == member.member_id), MemberProgress())
    limit = poll_interval(known.rebalance_timeout_ms)
    if known.committed_ms >= 0:
        why.append(f"its last commit was {span(known.committed_ms)} ago")
    why.append(
        "it sends heartbeats, so its process lives: it works on what it has polled, hangs, or does not commit"
        " (enable.auto.commit)"
    )
    leaves = "leaves by itself" if state.epoch is None else "leaves by itself (librdkafka: when it polls again)"
    waits_for = f"its next commit; a client that does not poll within {limit} {leaves}"
    return Finding(f"{member.named} committed nothing within {WATCHED_S} s", tuple(why), waits_for, needs_action=True)


def at_words(position: Position) -> str:
    return "no offset committed" if position.committed is None else f"committed offset {position.committed.offset}"


def waits(position: Position) -> int:
    """Offsets that a reader has before it."""
    ends = position.ends
    if isinstance(ends, str):
        return 0
    return ends.end - (ends.start if position.committed is None else min(position.committed.offset, ends.end))


def is_held(position: Position) -> bool:
    """Has it read all that readers of what is committed may read?"""
    ends, committed = position.ends, position.committed
    return isinstance(ends, Ends) and committed is not None and ends.last_stable <= committed.offset < ends.end


def falling_behind(facts: GroupFacts) -> tuple[Finding, ...]:
    """Commits move, and the lag grows none the less."""
    earlier = {position.at: position.lag for position in facts.before}
    moved = facts.moved()
    found = [
        (position.at, was, position.lag)
        for position in facts.positions
        if position.at in moved and position.lag is not None and (was := earlier.get(position.at)) is not None
    ]
    grown = [(at, was, lag) for at, was, lag in found if lag > was]
    if not grown:
        return ()
    why = [f"{at}: {was} offsets behind, and {lag} after {WATCHED_S} s" for at, was, lag in grown[:5]]
    what = f"it falls behind in {places(at for at, _, _ in grown)}: it reads, but slower than producers write"
    return (Finding(what, tuple(why), "more members, more partitions, or faster ones"),)


def judge_transactions(facts: GroupFacts) -> tuple[Finding, ...]:
    """Open transactions at which the group's read_committed consumers wait."""
    found = []
    for at, held in sorted(facts.held.items()):
        for finding in judge_held(Facts(facts.states[at], dict(facts.brokers), held=held, options=facts.options)):
            found.append(
                Finding(
                    f"{at}: {finding.what}",
                    finding.why,
                    finding.waits_for,
                    finding.needs_action,
                    finding.is_missing,
                    finding.ways,
                )
            )
    return tuple(found)
