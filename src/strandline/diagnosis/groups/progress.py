"""Why a group does not make progress: facts in, findings out (`diagnosis.groups.gathering` gathers the facts)."""

from typing import Any

from strandline.client.admin.groups.described import GroupState
from strandline.diagnosis import situation
from strandline.diagnosis.groups.coordination import judge_coordinator, judge_membership, judge_removed, judge_unrevoked
from strandline.diagnosis.groups.facts import GroupFacts, count, span
from strandline.diagnosis.groups.reading import judge_positions, judge_topics, judge_transactions
from strandline.diagnosis.groups.rows import departure_json, group_json, member_json, position_json
from strandline.diagnosis.situation import Finding, status_of


def judge_group(facts: GroupFacts) -> tuple[Finding, ...]:
    state = facts.answer
    if not isinstance(state, GroupState):
        return judge_coordinator(facts)
    return (
        *judge_membership(facts, state),
        *judge_removed(state),
        *judge_unrevoked(state),
        *judge_topics(facts, state),
        *judge_positions(facts, state),
        *judge_transactions(facts),
    )


def lines_of(facts: GroupFacts, findings: tuple[Finding, ...]) -> list[str]:
    group = f"group {facts.group_id}"
    if not findings:
        return [f"{group}: healthy: {standing(facts)}"]
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{group}: {finding.what}")
        lines += [f"  why: {text}" for text in finding.why]
        lines += [f"  waits for: {finding.waits_for}"] if finding.waits_for else []
    for finding in findings:
        for way in finding.ways:
            lines += [f"  way out: {way.what}", f"    costs: {way.costs}", f"    $ {way.command}"]
    if not any(finding.needs_action for finding in findings):
        is_known = status_of(findings) == situation.HEALTHY
        lines.append("  there is nothing to do" if is_known else "  a fact is missing, so there may be more")
    return lines


def standing(facts: GroupFacts) -> str:
    state = facts.answer
    assert isinstance(state, GroupState), "a group without a coordinator has a finding"
    since = "" if state.progress is None else f" for {span(state.progress.in_state_ms)}"
    members = count(len(state.members), "member")
    read = count(len(state.owners()), "partition")
    return f"{state.state}{since}, {members} with {read}, lag {facts.lag}; broker {state.coordinator} coordinates it"


def as_json(facts: GroupFacts, findings: tuple[Finding, ...]) -> dict[str, Any]:
    state = facts.answer if isinstance(facts.answer, GroupState) else None
    owners = {} if state is None else state.owners()
    progress = None if state is None else state.progress
    return {
        "group": facts.group_id,
        "status": status_of(findings),
        "findings": [situation.as_json(finding) for finding in findings],
        "described": None if state is None else group_json(state),
        "members": [] if state is None else [member_json(state, member) for member in state.members],
        "departures": [] if progress is None else [departure_json(row) for row in progress.departures],
        "positions": [position_json(facts.group_id, row, owners.get(row.at)) for row in facts.positions],
        "committed_within_s": sorted(map(str, facts.moved())) if facts.is_watched else None,
    }
