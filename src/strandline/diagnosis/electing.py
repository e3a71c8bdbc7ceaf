"""An election by hand: its plan, the election itself, and what came of it, asked of the cluster."""

import time
from collections.abc import Iterable
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.client.admin.features import feature_levels
from strandline.client.admin.loss_ledger import METADATA, Entry, ask_ledger
from strandline.client.admin.loss_ledger import as_json as loss_as_json
from strandline.client.admin.partitions import PartitionState, Place, describe_partitions
from strandline.client.admin.replica_logs import ask_replicas
from strandline.client.ask import Servers, ask_any
from strandline.client.brokers import brokers_of
from strandline.client.errors import BadOption, StrandlineError
from strandline.diagnosis import election_plan
from strandline.diagnosis.election_plan import ElectionResult, Kind, Plan, plan_election
from strandline.diagnosis.loss_words import line_of
from strandline.metadata.features import ELR_FEATURE
from strandline.wire.messages.own.describe_losses import Loss
from strandline.wire.messages.topics.elect_leaders import PARTITIONS_MAX, ElectLeadersRequest, TopicPartitions

E = ErrorCode
Wanted = dict[Place, int]  # partitions, and the broker that leads each; -1: any
Results = dict[Place, str | None]  # what went wrong; None: a leader was elected; "": it has the leader it should have
Seen = dict[Place, tuple[PartitionState, Loss | None]]  # each partition as it is, and the ledger's entry for its leader
KAFKAS_VERSION, OWN_VERSION = 2, 3
ELECTION_TIMEOUT_MS = 60_000
SEEN_WITHIN_S = 5.0


def plans_of(bootstrap: Servers, kind: Kind, wanted: Wanted | None) -> list[Plan]:
    """The named partitions, or all without a leader."""
    states = chosen(bootstrap, wanted)
    if kind.value > Kind.UNCLEAN.value and not all(state.is_of_our_own for state in states):
        raise BadOption(
            f"this cluster does not know elections of type {kind.name.lower()}: it is not Strandline",
            "Apache Kafka knows preferred and unclean",
        )
    leaderless = [state for state in states if state.leader < 0]
    reports = ask_replicas(leaderless, brokers_of(bootstrap)) if leaderless else {}
    is_elr_enabled = feature_levels(bootstrap).get(ELR_FEATURE, 0) > 0
    shown = leaderless if wanted is None else states
    return [
        plan_election(
            state, reports.get(state.at, ()), kind, -1 if wanted is None else wanted[state.at], is_elr_enabled
        )
        for state in shown
    ]


def chosen(bootstrap: Servers, wanted: Wanted | None) -> list[PartitionState]:
    if wanted is None:
        return describe_partitions(bootstrap)
    states = describe_partitions(bootstrap, dict.fromkeys(at.topic for at in wanted))
    found = {state.at: state for state in states}
    unknown = [str(at) for at in wanted if at not in found]
    if unknown:
        problem = f"partition {', '.join(unknown)} does not exist"
        raise StrandlineError(problem, "`strandline topics describe` shows the partitions")
    return [found[at] for at in wanted]


def elect(bootstrap: Servers, kind: Kind, wanted: Wanted | None) -> Results:
    if wanted is None:
        return ask_for(bootstrap, kind, None)
    found: Results = {}
    places = list(wanted)
    for first in range(0, len(places), PARTITIONS_MAX):
        piece = {at: wanted[at] for at in places[first : first + PARTITIONS_MAX]}
        found |= ask_for(bootstrap, kind, piece)
    return found


def ask_for(bootstrap: Servers, kind: Kind, wanted: Wanted | None) -> Results:
    version = OWN_VERSION if kind.value > Kind.UNCLEAN.value else KAFKAS_VERSION
    request = ElectLeadersRequest(
        election_type=kind.value,
        topic_partitions=None if wanted is None else rows_of(kind, wanted),
        timeout_ms=ELECTION_TIMEOUT_MS,
    )
    answer = ask_any(bootstrap, request, version, ELECTION_TIMEOUT_MS / 1000 + SEEN_WITHIN_S)
    return {
        Place(result.topic, row.partition_id): why(row.error_code, row.error_message)
        for result in answer.replica_election_results
        for row in result.partition_result
    }


def rows_of(kind: Kind, wanted: Wanted) -> tuple[TopicPartitions, ...]:
    topics: dict[str, list[Place]] = {}
    for at in wanted:
        topics.setdefault(at.topic, []).append(at)
    return tuple(
        TopicPartitions(
            topic=name,
            partitions=tuple(at.partition for at in found),
            designated_leaders=tuple(wanted[at] for at in found) if kind is Kind.DESIGNATION else None,
        )
        for name, found in topics.items()
    )


def why(error_code: int, message: str | None) -> str | None:
    if error_code == E.ELECTION_NOT_NEEDED:
        return ""
    return None if error_code == E.NONE else message or ErrorCode(error_code).name


def seen_after(bootstrap: Servers, elected: Iterable[Place], plans: dict[Place, Plan]) -> Seen:
    """Who leads now, and the ledger's entry for it, as soon as the nodes that are asked have heard of it."""
    places = dict.fromkeys(elected, -1)
    if not places:
        return {}
    until = time.monotonic() + SEEN_WITHIN_S
    while True:
        states = {state.at: state for state in chosen(bootstrap, places)}
        ledger = ask_ledger(brokers_of(bootstrap), dict.fromkeys(at.topic for at in places))
        entries = {Place(loss.topic, loss.partition): loss for loss in ledger.losses if loss.where == METADATA}
        seen = {at: (state, entry_for(state, entries.get(at))) for at, state in states.items()}
        is_all = all(
            state.leader >= 0 and (entry is not None or plans[at].loss is None) for at, (state, entry) in seen.items()
        )
        if is_all or time.monotonic() > until:
            return seen
        time.sleep(0.1)


def entry_for(state: PartitionState, latest: Loss | None) -> Loss | None:
    """The ledger's latest entry, if the election that it is about gave the leader of now."""
    return (
        latest
        if latest is not None and (latest.replica, latest.new_epoch) == (state.leader, state.leader_epoch)
        else None
    )


def outcome_lines(
    at: Place, is_elected: bool, seen: tuple[PartitionState, Loss | None] | None, plan: Plan | None
) -> list[str]:
    if not is_elected:
        return [f"{at}: already has the right leader"]
    if seen is None or seen[0].leader < 0:
        return [f"{at}: a leader was elected"]
    state, entry = seen
    if entry is not None:
        ledger = f"ledger: {line_of(loss_as_json(Entry((entry,))))}"
    elif (
        plan is None
        or plan.loss is not None
        or (state.is_recovering and plan.candidate.outcome is ElectionResult.CLEAN)
    ):
        ledger = f"its entry in the ledger is not visible yet: strandline losses {at.topic}:{at.partition}"
    else:
        ledger = "nothing was lost"
    return [f"{at}: broker {state.leader} was elected, and leads in epoch {state.leader_epoch}", f"  {ledger}"]


def as_json(results: Results, plans: dict[Place, Plan], seen: Seen) -> dict[str, Any]:
    rows = []
    for at, wrong in results.items():
        state, entry = seen.get(at, (None, None))
        rows.append(
            {
                "topic": at.topic,
                "partition": at.partition,
                "outcome": "elected" if wrong is None else "failed" if wrong else "not needed",
                "error": wrong or None,
                "leader": state.leader if state else None,
                "leader_epoch": state.leader_epoch if state else None,
                "ledger": loss_as_json(Entry((entry,))) if entry else None,
            }
        )
    return {"plan": [election_plan.as_json(plan) for plan in plans.values()], "results": rows}
