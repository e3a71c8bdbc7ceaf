"""`strandline leader-election`: have leaders elected now, as kafka-leader-election does, and as KIP-966 wants it to.

Every election but the preferred one may lose records. The command shows a plan before it asks for one.
"""

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from strandline.base.errors import ErrorCode
from strandline.cli.admin.losses import line_of as loss_line
from strandline.cli.admin.partitions_file import designated_leader as designated_in
from strandline.cli.admin.partitions_file import read_partitions
from strandline.cli.connect import HERE, Json, OfCluster, fail
from strandline.client.admin.features import feature_levels
from strandline.client.admin.loss_ledger import METADATA, Entry, ask_ledger
from strandline.client.admin.loss_ledger import as_json as loss_as_json
from strandline.client.admin.partitions import PartitionState, Place, describe_partitions
from strandline.client.admin.replica_logs import ask_replicas
from strandline.client.ask import Servers, ask_any
from strandline.client.brokers import brokers_of
from strandline.diagnosis import election_plan
from strandline.diagnosis.election_plan import ElectionResult, Kind, Plan, lines_of, plan_election
from strandline.metadata.features import ELR_FEATURE
from strandline.wire.messages.own.describe_losses import Loss
from strandline.wire.messages.topics.elect_leaders import PARTITIONS_MAX, ElectLeadersRequest, TopicPartitions

E = ErrorCode
Wanted = dict[Place, int]  # partitions, and the broker that leads each; -1: any
Type = Literal[
    "preferred", "unclean", "designation", "longest_log_balanced", "longest_log_aggressive", "longest_log_agressive"
]
MISSPELT = {"longest_log_agressive": "longest_log_aggressive"}  # so it stands in the KIP
KAFKAS_VERSION, OWN_VERSION = 2, 3
ELECTION_TIMEOUT_MS = 60_000
SEEN_WITHIN_S = 5.0


def leader_election(
    *,
    election_type: Type,
    topic: str | None = None,
    partition: int | None = None,
    designated_leader: int | None = None,
    all_topic_partitions: Annotated[bool, Parameter(negative="")] = False,
    path_to_json_file: Path | None = None,
    yes: Annotated[bool, Parameter(negative="")] = False,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Elect leaders: preferred ones, or, for partitions without a leader, replicas that may lack records.

    All types but preferred first show who would lead each partition and what that loses, and ask for confirmation.

    Parameters
    ----------
    election_type
        preferred: the first replica, if it is in sync; loses nothing. unclean: the last leader, or the first replica
        that is online. designation: the given broker. longest_log_aggressive: the longest log of the replicas that
        answer. longest_log_balanced: the same, once all that were eligible last have answered
    topic
        the topic of one partition
    partition
        the partition of --topic
    designated_leader
        the broker that leads it, for type designation
    all_topic_partitions
        all partitions of all topics
    path_to_json_file
        {"partitions": [{"topic": "t", "partition": 0, "designatedLeader": 1}]}; designatedLeader is for designation
    yes
        do not ask for confirmation
    dry_run
        show the plan, and hold no election
    """
    kind = Kind[MISSPELT.get(election_type, election_type).upper()]
    ways = (topic is not None, all_topic_partitions, path_to_json_file is not None)
    if sum(ways) != 1 or (topic is None) != (partition is None):
        fail("name --topic and --partition, or --path-to-json-file, or --all-topic-partitions", status=2)
    wanted = wanted_of(kind, topic, partition, designated_leader, path_to_json_file)
    if kind is not Kind.PREFERRED:
        elect_as_planned(cluster.config, kind, wanted, yes=yes, dry_run=dry_run, json_output=json_output)
    elif dry_run:
        fail("--dry-run is for elections that may lose records; preferred loses none", status=2)
    else:
        finish(elect(cluster.config, kind, wanted), {}, json_output)


def elect_as_planned(
    bootstrap: Servers, kind: Kind, wanted: Wanted | None, *, yes: bool, dry_run: bool, json_output: bool
) -> None:
    """Show what the election would do, ask, do it, and show what came of it."""
    if json_output and not (yes or dry_run):
        fail("--json needs --yes or --dry-run, since it does not ask", status=2)
    plans = plans_of(bootstrap, kind, wanted)
    if not json_output:
        show(plans)
    if dry_run:
        if json_output:
            print(json.dumps({"plan": [election_plan.as_json(plan) for plan in plans]}))
        return
    due = {plan.at: plan for plan in plans if plan.candidate.outcome is not ElectionResult.NOT_NEEDED}
    if due and not yes:
        confirm(kind)
    results = elect(bootstrap, kind, {at: wanted[at] if wanted else -1 for at in due}) if due else {}
    finish(results, due, json_output, seen_after(bootstrap, [at for at, why in results.items() if why is None], due))


def wanted_of(
    kind: Kind, topic: str | None, partition: int | None, designated: int | None, path: Path | None
) -> Wanted | None:
    """None: all partitions of all topics. Only a designation names leaders, and it names one for each partition."""
    if designated is not None and topic is None:
        fail("--designated-leader is for one partition; a file names one for each", status=2)
    wanted: Wanted | None = None
    named: dict[Place, int | None] = {}
    if topic is not None and partition is not None:
        named = {Place(topic, partition): designated}
    elif path is not None:
        named = {Place(row["topic"], row["partition"]): designated_in(path, row) for row in read_partitions(path)}
    if topic is not None or path is not None:
        wanted = {at: -1 if node is None else node for at, node in named.items()}
    if kind is Kind.DESIGNATION and (wanted is None or -1 in wanted.values()):
        without = next((f" for {at}" for at, node in (wanted or {}).items() if node < 0), "")
        fail(f"a designation needs a leader{without}", "name it with --designated-leader, or in the file", status=2)
    if kind is not Kind.DESIGNATION and any(node >= 0 for node in (wanted or {}).values()):
        fail("only --election-type designation takes designated leaders", status=2)
    return wanted


# --- what it would do


def plans_of(bootstrap: Servers, kind: Kind, wanted: Wanted | None) -> list[Plan]:
    """The named partitions, or all without a leader."""
    states = chosen(bootstrap, wanted)
    if kind.value > Kind.UNCLEAN.value and not all(state.is_of_our_own for state in states):
        fail(
            f"this cluster does not know elections of type {kind.name.lower()}: it is not Strandline",
            "Apache Kafka knows preferred and unclean",
            status=2,
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
        fail(f"there is no partition {', '.join(unknown)}")
    return [found[at] for at in wanted]


def show(plans: list[Plan]) -> None:
    if not plans:
        print("every partition has a leader: there is nothing to do")
    for plan in plans:
        print("\n".join(lines_of(plan)))


def confirm(kind: Kind) -> None:
    """What is lost by it nobody brings back."""
    name = kind.name.lower()
    if not sys.stdin.isatty():
        fail(f"an election of type {name} may lose records", "confirm it with --yes", status=2)
    if input("This may lose records that were acknowledged. Go on? [y/N] ").strip().lower() != "y":
        fail("no leader was elected")


# --- doing it

Results = dict[Place, str | None]  # what went wrong; None: a leader was elected; "": it has the leader it should have


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


# --- what came of it

Seen = dict[Place, tuple[PartitionState, Loss | None]]


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


def finish(results: Results, plans: dict[Place, Plan], json_output: bool, seen: Seen | None = None) -> None:
    seen = seen or {}
    if json_output:
        print(json.dumps(as_json(results, plans, seen)))
    else:
        for at, wrong in results.items():
            if not wrong:
                print("\n".join(outcome_lines(at, wrong is None, seen.get(at), plans.get(at))))
    failed = [f"{at}: {wrong}" for at, wrong in results.items() if wrong]
    if failed:
        fail("; ".join(failed))


def outcome_lines(
    at: Place, is_elected: bool, seen: tuple[PartitionState, Loss | None] | None, plan: Plan | None
) -> list[str]:
    if not is_elected:
        return [f"{at}: already has the right leader"]
    if seen is None or seen[0].leader < 0:
        return [f"{at}: a leader was elected"]
    state, entry = seen
    if entry is not None:
        ledger = f"ledger: {loss_line(loss_as_json(Entry((entry,))))}"
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
