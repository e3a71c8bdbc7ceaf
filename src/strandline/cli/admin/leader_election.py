"""`strandline leader-election`: have leaders elected now, as kafka-leader-election does, and as KIP-966 wants it to.

Every election but the preferred one may lose records. The command shows a plan before it asks for one.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from strandline.cli.admin.partitions_file import designated_leader as designated_in
from strandline.cli.admin.partitions_file import read_partitions
from strandline.cli.connect import HERE, Json, OfCluster, fail, misuse
from strandline.client.admin.partitions import Place
from strandline.client.ask import Servers
from strandline.diagnosis import election_plan
from strandline.diagnosis.electing import (
    Results,
    Seen,
    Wanted,
    as_json,
    elect,
    outcome_lines,
    plans_of,
    seen_after,
)
from strandline.diagnosis.election_plan import ElectionResult, Kind, Plan, lines_of

Type = Literal[
    "preferred", "unclean", "designation", "longest_log_balanced", "longest_log_aggressive", "longest_log_agressive"
]
MISSPELT = {"longest_log_agressive": "longest_log_aggressive"}  # so it stands in the KIP


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
        misuse(
            "the partitions are not named, or named twice",
            "name them with --topic and --partition, --path-to-json-file, or --all-topic-partitions",
        )
    wanted = wanted_of(kind, topic, partition, designated_leader, path_to_json_file)
    if kind is not Kind.PREFERRED:
        elect_as_planned(cluster.config, kind, wanted, yes=yes, dry_run=dry_run, json_output=json_output)
    elif dry_run:
        misuse("--dry-run is for elections that may lose records; preferred loses none", "leave --dry-run out")
    else:
        finish(elect(cluster.config, kind, wanted), {}, json_output)


def elect_as_planned(
    bootstrap: Servers, kind: Kind, wanted: Wanted | None, *, yes: bool, dry_run: bool, json_output: bool
) -> None:
    """Show what the election would do, ask, do it, and show what came of it."""
    if json_output and not (yes or dry_run):
        misuse("--json does not ask whether to elect", "add --yes to elect, or --dry-run for the plan alone")
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
        misuse("--designated-leader is for one partition", "name a leader for each in the file of --path-to-json-file")
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
        misuse("only --election-type designation takes designated leaders", "leave the leaders out, or change the type")
    return wanted


# --- what it would do


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
        fail("no leader was elected, since you did not confirm it", "answer y, or add --yes")


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
        fail("; ".join(failed), "`strandline explain TOPIC:PARTITION` says what an election needs")
