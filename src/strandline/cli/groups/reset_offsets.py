"""`strandline groups reset-offsets`: where a group goes on, by the options of kafka-consumer-groups.

Without --execute it shows the plan and changes nothing.
"""

import json
import sys
from collections.abc import Mapping
from typing import Annotated

from cyclopts import Parameter

from strandline.cli.connect import HERE, Json, OfCluster, fail, misuse
from strandline.cli.groups.choosing import All, Ids, Topics, described
from strandline.cli.groups.columns import RESET, show_groups
from strandline.cli.groups.executing import REPEAT, DryRun, Execute, check_one, show_unchanged, warn
from strandline.cli.groups.reset_options import OfTarget, To
from strandline.client.admin.groups.scope import scope_of
from strandline.client.admin.partitions import Place
from strandline.client.cluster import Cluster as Connected
from strandline.diagnosis.groups.plans import Reset, Target, consequence, reset_json, why_not_inactive
from strandline.diagnosis.groups.resetting import planned, reset

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
        misuse("it is not clear which topics are meant", "name --topic or --all-topics; with --from-file neither")
    scope = scope_of(topic or ())
    _, states = described(cluster, group, all_groups)
    with Connected(cluster.config) as connected:
        plans, unplanned = planned(cluster.config, connected, states, to.goal([s.group_id for s in states]), scope)
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
        fail("; ".join(f"{group_id}: {at}: {why}" for (group_id, at), why in failed.items()), REPEAT)


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
