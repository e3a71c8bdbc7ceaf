"""`strandline explain`: why a partition is as it is, what it waits for, and which ways there are out of it.

With --group: why a group does not make progress (`cli.groups.explain`).
"""

import json
from typing import Any

from strandline.cli.connect import HERE, Cluster, Json, OfCluster, fail
from strandline.cli.groups.explain import explain_group
from strandline.client.admin.behind import out_of_sync
from strandline.client.admin.control import has_active_controller, waits_for
from strandline.client.admin.loss_ledger import ask_ledger
from strandline.client.admin.open_transactions import holders
from strandline.client.admin.partitions import PartitionState, chosen
from strandline.client.admin.replica_logs import LogReport, ReplicaLog, Unasked, ask_replicas, moved_since
from strandline.client.brokers import brokers_of
from strandline.diagnosis import replica_logs, situation
from strandline.diagnosis.leaderless import judge_leaderless
from strandline.diagnosis.ledger_facts import NOTHING_WRITTEN, meaning, written
from strandline.diagnosis.partitions import as_json as state_as_json
from strandline.diagnosis.partitions import numbers
from strandline.diagnosis.replica_logs import words
from strandline.diagnosis.situation import (
    WATCHED_S,
    Facts,
    Finding,
    judge_control,
    judge_damage,
    judge_led,
    judge_withdrawn,
    status_of,
)
from strandline.diagnosis.transactions import held_json, judge_held


def explain(
    place: str | None = None, /, *, group: str | None = None, cluster: OfCluster = HERE, json_output: Json = False
) -> int:
    """Say what is wrong with a partition or a group, what it waits for, and what can be done.

    Each way out is shown with its cost in records and its command. Exit status 0 if there is nothing to do, 2 if
    an operator must act, 3 if a broker did not answer.

    Parameters
    ----------
    place
        TOPIC or TOPIC:PARTITION
    group
        instead of a partition: the consumer group that does not make progress
    """
    if (place is None) == (group is None):
        fail("name TOPIC or TOPIC:PARTITION, or else --group GROUP", status=2)
    if group is not None:
        return explain_group(cluster, group, json_output)
    assert place is not None
    states = chosen(cluster.config, place)
    if not all(state.is_of_our_own for state in states):
        fail("this cluster does not report what its partitions wait for: it is not Strandline", status=2)
    found = [(facts, judge(facts)) for facts in gathered(cluster, states)]
    if json_output:
        print(json.dumps([as_json(facts, findings) for facts, findings in found]))
    else:
        for facts, findings in found:
            print("\n".join(lines_of(facts, findings)))
    return max_status([status_of(findings) for _, findings in found])


def judge(facts: Facts) -> tuple[Finding, ...]:
    of_itself = judge_leaderless(facts) if facts.state.leader < 0 else judge_led(facts)
    return (*judge_control(facts), *of_itself, *judge_withdrawn(facts), *judge_damage(facts), *judge_held(facts))


def max_status(statuses: list[int]) -> int:
    """That an operator must act goes before that facts are missing."""
    return next((status for status in (situation.ACTION, situation.MISSING) if status in statuses), situation.HEALTHY)


# --- facts


def gathered(cluster: Cluster, states: list[PartitionState]) -> list[Facts]:
    """Of healthy partitions nothing is asked but their replicas."""
    bootstrap = cluster.config
    brokers = brokers_of(bootstrap)
    ill = [state for state in states if not is_healthy(state)]
    reports = ask_replicas(states, brokers)
    lagging = [state for state in ill if state.leader >= 0 and missing(state)]
    alive = [
        state for state in lagging if any(is_log(row) and row.replica in missing(state) for row in reports[state.at])
    ]
    moved = moved_since(reports, {state: missing(state) for state in alive}, brokers, WATCHED_S) if alive else {}
    behind = out_of_sync(bootstrap, [state.at for state in lagging]) if lagging else {}
    waits = waits_for(bootstrap, [state.at for state in ill if state.adding or state.removing])
    hanging = {row.replica for rows in reports.values() for row in rows if isinstance(row, Unasked) and row.hangs}
    answering = {node: at for node, at in brokers.items() if node not in hanging}
    ledger = written(ask_ledger(answering, dict.fromkeys(state.at.topic for state in states)))
    has_controller = has_active_controller(brokers)
    held = holders(bootstrap, answering, states, reports)
    return [
        Facts(
            state=state,
            brokers=brokers,
            reports=reports.get(state.at, ()),
            moved=moved.get(state.at, frozenset()),
            behind=behind.get(state.at, ""),
            waits_for=waits.get(state.at),
            ledger=ledger.get(state.at, NOTHING_WRITTEN),
            has_controller=has_controller,
            held=held.get(state.at),
            options=cluster.options,
        )
        for state in states
    ]


def is_healthy(state: PartitionState) -> bool:
    return not (state.is_unavailable or missing(state) or state.adding or state.removing or state.is_recovering)


def is_log(row: LogReport) -> bool:
    return isinstance(row, ReplicaLog)


def missing(state: PartitionState) -> list[int]:
    return [node for node in state.replicas if node not in state.isr]


# --- for a person


def lines_of(facts: Facts, findings: tuple[Finding, ...]) -> list[str]:
    state = facts.state
    said = facts.ledger.words
    ledger = [f"  the loss ledger has {said} of it: {ledger_command(facts)}"] if said else []
    ledger += [f"  if one is lost: {text}" for text in lost_means(facts)]
    if not findings:
        return [f"{state.at}: healthy: broker {state.leader} leads, {numbers(state.isr)} in sync", *ledger]
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{state.at}: {finding.what}")
        lines += [f"  why: {text}" for text in finding.why]
        lines += [f"  waits for: {finding.waits_for}"] if finding.waits_for else []
    logged = [words(row) for row in facts.reports if isinstance(row, ReplicaLog)]
    lines += [f"  data: {text}" for text in logged]
    known = {text for finding in findings for text in finding.why}
    unasked = [words(row) for row in facts.reports if isinstance(row, Unasked)]
    lines += [f"  not asked: {text}" for text in unasked if text not in known]
    lines += ledger
    for finding in findings:
        for way in finding.ways:
            lines += [f"  way out: {way.what}", f"    costs: {way.costs}", f"    $ {way.command}"]
    if not any(finding.needs_action for finding in findings):
        lines.append(
            "  there is nothing to do"
            if status_of(findings) == 0
            else "  a broker did not answer, so there may be more"
        )
    return lines


def lost_means(facts: Facts) -> tuple[str, ...]:
    """Where records are lost, or would be by a way out."""
    return meaning(facts.state.at.topic) if facts.ledger.words or facts.state.leader < 0 else ()


def ledger_command(facts: Facts) -> str:
    seen = " --all" if facts.ledger.acknowledged else ""
    return f"strandline losses {facts.state.at.topic}:{facts.state.at.partition}{seen}{facts.options}"


def as_json(facts: Facts, findings: tuple[Finding, ...]) -> dict[str, Any]:
    return {
        **state_as_json(facts.state),
        "status": status_of(findings),
        "findings": [situation.as_json(finding) for finding in findings],
        "logs": [replica_logs.as_json(row) for row in facts.reports],
        "ledger_entries": facts.ledger.open + facts.ledger.acknowledged,
        "acknowledged_entries": facts.ledger.acknowledged,
        "if_one_is_lost": lost_means(facts),
        "withdrawn": [loss.replica for loss in facts.ledger.withdrawn],
        "held_by": held_json(facts.held),
    }
