"""Why nobody leads a partition, whom it waits for, and what each way out costs (KIP-966, Leader election).

What is waited for is the controller's own judgement (`controller.partitions.standing`), made here of what the metadata
says; what an election would cost is the plan's (`diagnosis.election_plan`), made of what the replicas say.
"""

from strandline.client.admin.replica_logs import ReplicaLog
from strandline.controller.partitions.recovery import candidates
from strandline.controller.partitions.standing import Standing, standing_of
from strandline.diagnosis.election_plan import ElectionResult, Kind, Plan, losses_of, plan_election
from strandline.diagnosis.partitions import brokers, numbers, registered
from strandline.diagnosis.situation import Facts, Finding, OutOfSync, WayOut, absence
from strandline.metadata.strategy import Strategy

NOBODY_CLEAN = "nobody is in sync or eligible"
TIMEOUT = "unclean.recovery.timeout.ms"


def judge_leaderless(facts: Facts) -> tuple[Finding, ...]:
    state, standing = facts.state, standing_in(facts)
    awaited = awaited_in(standing, facts)
    absent = [out for node in awaited if (out := absence(node, facts)) is not None]
    comes = comes_by_itself(standing, awaited, absent)
    silent = [node for node in state.online if is_silent(node, facts)]
    why = (
        reason(standing, facts),
        *(out.why for out in absent),
        *(f"broker {node} should be there, but does not answer" for node in silent),
    )
    ways = () if comes else (*returns(standing, absent), *elections(facts))
    return (Finding("nobody leads", why, waits(standing, awaited, absent, facts), not comes, bool(silent), ways),)


def standing_in(facts: Facts) -> Standing:
    state = facts.state
    return standing_of(
        registered(state),
        Strategy(state.strategy),
        state.is_managed,
        lambda node: node in state.online,
        lambda node: node in facts.brokers,
    )


def awaited_in(standing: Standing, facts: Facts) -> tuple[int, ...]:
    """Those of whom one, or all, must be there."""
    state = facts.state
    match standing:
        case Standing.MEMBER:
            return state.isr
        case Standing.ELIGIBLE:
            return state.elr
        case Standing.LAST_ELIGIBLE:
            return state.last_known_elr
        case Standing.LAST_LEADER:
            return (state.last_known_leader,)
        case Standing.RECOVERY if state.strategy == Strategy.BALANCED.value:
            return state.last_known_elr
        case Standing.RECOVERY:
            return tuple(candidates(registered(state)))
        case Standing.ANYBODY:
            return state.replicas
    return tuple(dict.fromkeys((*state.isr, *state.elr, *state.last_known_elr)))


def comes_by_itself(standing: Standing, awaited: tuple[int, ...], absent: list[OutOfSync]) -> bool:
    """Will somebody lead, if all stays as it is?"""
    match standing:
        case Standing.OPERATOR:
            return False
        case Standing.LAST_ELIGIBLE:
            return not absent
    return len(absent) < len(awaited)


def reason(standing: Standing, facts: Facts) -> str:
    state = facts.state
    strategy = f"unclean.recovery.strategy is {state.strategy}"
    match standing:
        case Standing.MEMBER:
            return f"in sync: {brokers(state.isr)}, with everything that was committed; no other replica may lead"
        case Standing.ELIGIBLE:
            return f"nobody is in sync; eligible: {brokers(state.elr)}, with everything that was committed"
        case Standing.RECOVERY if state.isr or state.elr:
            return f"{strategy}: a leader is found without waiting for {brokers((*state.isr, *state.elr))}"
        case Standing.RECOVERY:
            return f"{NOBODY_CLEAN}, and {strategy}: an unclean recovery finds the longest log"
        case Standing.LAST_ELIGIBLE:
            return f"{NOBODY_CLEAN}, and {strategy}: the last eligible replicas are asked what they still have"
        case Standing.LAST_LEADER:
            return f"{NOBODY_CLEAN}, {strategy}, and recoveries are not managed: only the last leader may lead"
        case Standing.ANYBODY:
            return f"{strategy}, and recoveries are not managed: any live replica may lead"
    return why_operator(facts)


def why_operator(facts: Facts) -> str:
    state = facts.state
    gone = [node for node in (*state.isr, *state.elr) if node not in facts.brokers]
    if gone:
        return f"the replicas that could lead without loss are no longer registered: {brokers(gone)}"
    if state.strategy == Strategy.NONE.value:
        return f"{NOBODY_CLEAN}, and unclean.recovery.strategy is None: no replica that may lack records is elected"
    if not state.is_managed:
        return f"{NOBODY_CLEAN}, and the last leader is unknown, or no longer registered"
    return f"{NOBODY_CLEAN}, and the last eligible replicas are unknown, or one of them is no longer registered"


def waits(standing: Standing, awaited: tuple[int, ...], absent: list[OutOfSync], facts: Facts) -> str:
    there = [node for node in awaited if node not in {out.node for out in absent}]
    match standing:
        case Standing.OPERATOR:
            return "an operator"
        case Standing.LAST_ELIGIBLE if absent:
            return f"{brokers(awaited)} to be there, all of them; missing: {numbers(out.node for out in absent)}"
        case Standing.RECOVERY if there and facts.state.strategy == Strategy.AGGRESSIVE.value:
            return f"answers of all replicas, or the end of {TIMEOUT}; then the answers so far are enough"
        case Standing.RECOVERY | Standing.LAST_ELIGIBLE if there:
            return f"answers of {brokers(awaited)}, all of them; and of other replicas until {TIMEOUT} is over"
        case _ if there:
            return f"its election: {brokers(there)} can lead, and the controller has not elected yet"
    return f"broker {' or '.join(map(str, awaited))} to return"


# --- ways out


RETURNS = {
    Standing.MEMBER: ("", "none"),
    Standing.ELIGIBLE: ("", "none; but if its last stop was unclean, it is not eligible any more"),
    Standing.OPERATOR: (", so that it says what it has, and may be elected", "none"),
}
MAY_HAVE_LOST = ("", "what it lost when it stopped; the ledger will say as much of it as can be known")


def returns(standing: Standing, absent: list[OutOfSync]) -> list[WayOut]:
    """Brokers that come back."""
    then, costs = RETURNS.get(standing, MAY_HAVE_LOST)
    return [WayOut(out.remedy.what + then, costs, out.remedy.command) for out in absent if out.remedy is not None]


def elections(facts: Facts) -> list[WayOut]:
    """By hand, the one that knows most first. Each candidate is named once."""
    found: list[WayOut] = []
    named: set[int] = set()
    for kind in (Kind.LONGEST_LOG_BALANCED, Kind.LONGEST_LOG_AGGRESSIVE):
        plan = plan_election(facts.state, facts.reports, kind)
        if plan.candidate.outcome is ElectionResult.UNCLEAN and plan.candidate.node not in named:
            named.add(plan.candidate.node)
            found.append(election(plan, f"--election-type {kind.name.lower()}", facts))
    for node in facts.state.online:
        plan = plan_election(facts.state, facts.reports, Kind.DESIGNATION, node)
        if plan.candidate.outcome is ElectionResult.UNCLEAN and node not in named:
            found.append(election(plan, f"--election-type designation --designated-leader {node}", facts))
    return found


def election(plan: Plan, options: str, facts: Facts) -> WayOut:
    place = f"--topic {plan.at.topic} --partition {plan.at.partition}"
    why = ", whatever it has" if plan.kind is Kind.DESIGNATION else f": {plan.candidate.why}"
    return WayOut(
        f"elect broker {plan.candidate.node}{why}",
        "; ".join(losses_of(plan)),
        f"strandline leader-election {options} {place}{facts.options}",
    )


def is_silent(node: int, facts: Facts) -> bool:
    """A replica that could lead, and did not say what it has."""
    return not any(isinstance(row, ReplicaLog) and row.replica == node for row in facts.reports)
