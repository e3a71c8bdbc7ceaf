"""What `strandline explain` knows of partitions: the facts, asked of the cluster, and what is made of them."""

from typing import Any

from strandline.client.admin.behind import out_of_sync
from strandline.client.admin.control import has_active_controller, waits_for
from strandline.client.admin.loss_ledger import ask_ledger
from strandline.client.admin.open_transactions import holders
from strandline.client.admin.partitions import PartitionState
from strandline.client.admin.replica_logs import LogReport, ReplicaLog, Unasked, ask_replicas, moved_since
from strandline.client.ask import Servers
from strandline.client.brokers import brokers_of
from strandline.diagnosis import replica_logs, situation
from strandline.diagnosis.leaderless import judge_leaderless
from strandline.diagnosis.ledger_facts import NOTHING_WRITTEN, meaning, written
from strandline.diagnosis.partitions import as_json as state_as_json
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


def judge(facts: Facts) -> tuple[Finding, ...]:
    of_itself = judge_leaderless(facts) if facts.state.leader < 0 else judge_led(facts)
    return (*judge_control(facts), *of_itself, *judge_withdrawn(facts), *judge_damage(facts), *judge_held(facts))


def max_status(statuses: list[int]) -> int:
    """That an operator must act goes before that facts are missing."""
    return next((status for status in (situation.ACTION, situation.MISSING) if status in statuses), situation.HEALTHY)


def gathered(bootstrap: Servers, options: str, states: list[PartitionState]) -> list[Facts]:
    """Of healthy partitions nothing is asked but their replicas. `options`: what commands need to reach the cluster."""
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
            options=options,
        )
        for state in states
    ]


def is_healthy(state: PartitionState) -> bool:
    return not (state.is_unavailable or missing(state) or state.adding or state.removing or state.is_recovering)


def is_log(row: LogReport) -> bool:
    return isinstance(row, ReplicaLog)


def missing(state: PartitionState) -> list[int]:
    return [node for node in state.replicas if node not in state.isr]


def lost_means(facts: Facts) -> tuple[str, ...]:
    """Where records are lost, or would be by a way out."""
    return meaning(facts.state.at.topic) if facts.ledger.words or facts.state.leader < 0 else ()


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
