"""`strandline groups reset-offsets`: where a group goes on, by the options of kafka-consumer-groups.

Without --execute it shows the plan and changes nothing.
"""

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter

from strandline.base.ids import by_topic
from strandline.cli.connect import HERE, Cluster, Json, OfCluster, fail
from strandline.cli.groups.choosing import All, Ids, Scope, Topics, described, places_in, scope_of
from strandline.cli.groups.columns import RESET, show_groups
from strandline.cli.groups.executing import DryRun, Execute, check_one, show_unchanged, warn
from strandline.cli.groups.positions import states_of
from strandline.cli.groups.reset_options import OfTarget, To, read_offsets
from strandline.client.admin.groups.described import GroupState
from strandline.client.admin.groups.offsets import PATIENCE_MS, Position, committed_by, ends_of
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.cluster import Cluster as Connected
from strandline.client.errors import KafkaError
from strandline.client.groups import Committed
from strandline.diagnosis.groups.plans import Reset, Target, consequence, plan_reset, reset_json, why_not_inactive

NOWHERE = To()
AllTopics = Annotated[bool, Parameter(negative="", help="all topics for which the group has committed offsets")]
Export = Annotated[bool, Parameter(negative="", help="print the plan as CSV, for --from-file")]


def reset_offsets(
    *,
    group: Ids = None,
    all_groups: All = False,
    topic: Topics = None,
    all_topics: AllTopics = False,
    to: OfTarget = NOWHERE,
    execute: Execute = False,
    dry_run: DryRun = False,
    export: Export = False,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Plan to which offsets a group is reset, and with --execute reset it. The group must have no members.

    Shows for each partition the old and the new offset, and how many offsets the group skips or reads again.
    """
    target = to.target
    check_one(execute, dry_run)
    if (topic is not None) + all_topics != (target is not Target.FILE):
        fail("name --topic or --all-topics; with --from-file neither of them", status=2)
    scope = scope_of(topic or ())
    _, states = described(cluster, group, all_groups)
    with Connected(cluster.config) as connected:
        plans, unplanned = planned(cluster, connected, states, target, to, scope)
        if unplanned:
            fail("; ".join(unplanned), "nothing was changed")
        in_the_way = [why for state in states if (why := why_not_inactive(state)) is not None]
        if execute and in_the_way:
            fail(*in_the_way[0])
        failed = reset(connected, plans) if execute else {}
    show(plans, failed, execute, export, json_output)
    for problem, advice in in_the_way:
        warn(problem, advice)
    if failed:
        fail("; ".join(f"{group_id}: {at}: {why}" for (group_id, at), why in failed.items()))


# --- the plan


def planned(
    cluster: Cluster, connected: Connected, states: list[GroupState], target: Target, to: To, scope: Scope
) -> tuple[list[Reset], list[str]]:
    """What is planned, and what cannot be, and why."""
    now = datetime.now(UTC)
    named = [state.group_id for state in states]
    files = read_offsets(to.from_file, named) if to.from_file is not None else {}
    plans, unplanned = [], []
    for state in states:
        committed = committed_by(connected, state.group_id)
        places = partitions(cluster, scope, committed, files.get(state.group_id))
        ends = ends_of(connected, places, places)
        wanted: dict[Place, int | None] = dict.fromkeys(
            places, to.to_offset if target is Target.OFFSET else to.shift_by
        )
        if target in (Target.DATETIME, Target.DURATION):
            known = [at for at in places if not isinstance(ends[at], str)]
            wanted |= at_time(connected, known, to.timestamp_ms(now))
        wanted |= files.get(state.group_id, {})
        for at in places:
            position = Position(at, committed.get(at), ends[at])
            plan = plan_reset(state.group_id, position, target, wanted[at])
            if isinstance(plan, str):
                unplanned.append(plan)
            else:
                plans.append(plan)
    return plans, unplanned


def partitions(
    cluster: Cluster, scope: Scope, committed: Mapping[Place, Committed], named: Mapping[Place, int] | None
) -> dict[Place, PartitionState]:
    """`named`: by a file. If neither it nor a scope is given, all for which there are offsets."""
    if named is not None:
        return places_in(cluster, {**by_topic(named)})
    if scope:
        return places_in(cluster, scope)
    states = states_of(cluster, (at.topic for at in committed))
    return {at: state for at, state in states.items() if at in committed}


def at_time(connected: Connected, places: list[Place], timestamp_ms: int) -> dict[Place, int | None]:
    asked = {(at.topic, at.partition): timestamp_ms for at in places}
    found = connected.list_offsets(asked, 0, patience_ms=PATIENCE_MS)
    return {Place(*at): row.offset if row.offset >= 0 else None for at, row in found.items()}


# --- doing it


def reset(connected: Connected, plans: list[Reset]) -> dict[tuple[str, Place], str]:
    """What went wrong. Offsets are read again afterwards: they count if the group has them."""
    failed: dict[tuple[str, Place], str] = {}
    for group_id in dict.fromkeys(plan.group_id for plan in plans):
        mine = [plan for plan in plans if plan.group_id == group_id]
        try:
            connected.offset_commit(
                group_id, {(p.at.topic, p.at.partition): p.new for p in mine}, patience_ms=PATIENCE_MS
            )
            after = committed_by(connected, group_id)
        except KafkaError as error:
            failed |= {(group_id, plan.at): error.problem for plan in mine}
            continue
        for plan in mine:
            there = after.get(plan.at)
            if there is None or there.offset != plan.new:
                other = "none" if there is None else f"{there.offset}"
                failed[group_id, plan.at] = f"it was reset to {plan.new}, and has {other} now: does a consumer run?"
    return failed


def show(
    plans: list[Reset], failed: Mapping[tuple[str, Place], str], is_done: bool, export: bool, json_output: bool
) -> None:
    if json_output:
        outcome = "reset" if is_done else "planned"
        errors = [failed.get((plan.group_id, plan.at)) for plan in plans]
        rows = [reset_json(p, "failed" if e else outcome, e) for p, e in zip(plans, errors, strict=True)]
        print(json.dumps(rows))
        return
    if export:
        several = len({plan.group_id for plan in plans}) > 1
        for plan in plans:
            print(
                f"{plan.group_id},{plan.at.topic}" if several else plan.at.topic, plan.at.partition, plan.new, sep=","
            )
        return
    show_groups([{**reset_json(plan), "consequence": consequence(plan)} for plan in plans], RESET, False)
    if not plans:
        print("there is nothing to reset: the group has committed no offsets there", file=sys.stderr)
    elif not is_done:
        show_unchanged()
