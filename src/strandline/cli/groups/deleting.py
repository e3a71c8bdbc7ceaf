"""`strandline groups delete`: groups without members, with everything that they have committed.

Without --execute it shows the plan and changes nothing.
"""

import json

from strandline.cli.connect import HERE, Json, OfCluster, fail
from strandline.cli.groups.choosing import All, Ids, described
from strandline.cli.groups.columns import DELETED_GROUPS, show_groups
from strandline.cli.groups.executing import REPEAT, DryRun, Execute, check_one, show_unchanged, warn
from strandline.cli.show import Row
from strandline.client.admin.groups.described import Described, GroupState
from strandline.client.admin.groups.finding import asked_for
from strandline.client.admin.groups.offsets import committed_by
from strandline.client.admin.groups.states import delete_groups
from strandline.client.cluster import Cluster as Connected
from strandline.diagnosis.groups.plans import why_not_inactive


def delete(
    *,
    group: Ids = None,
    all_groups: All = False,
    execute: Execute = False,
    dry_run: DryRun = False,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Plan which groups are deleted, and with --execute delete them. A group with members is not deleted.

    A consumer that uses the group's name later begins where auto.offset.reset says.
    """
    check_one(execute, dry_run)
    brokers, states = described(cluster, group, all_groups)
    with Connected(cluster.config) as connected:
        offsets = {state.group_id: len(committed_by(connected, state.group_id)) for state in states}
    in_the_way = [why for state in states if (why := why_not_inactive(state)) is not None]
    if execute and in_the_way:
        fail(*in_the_way[0])
    failed: dict[str, str | None] = {}
    if execute:
        failed = delete_groups(brokers, {state.group_id: state.coordinator for state in states})
        done = [name for name, why in failed.items() if why is None]
        after = asked_for(cluster.config, brokers, done)
        failed |= {name: "it is there again: does a consumer run?" for name in done if is_there(after[name])}
    rows: list[Row] = []
    for state in states:
        error = failed.get(state.group_id)
        outcome = "failed" if error else "deleted" if execute else "planned"
        row = {"group": state.group_id, "state": state.state, "offsets": offsets[state.group_id]}
        rows.append({**row, "outcome": outcome, "error": error})
    show(rows, execute, json_output)
    for problem, advice in in_the_way:
        warn(problem, advice)
    if any(failed.values()):
        fail("; ".join(f"group '{name}' is not deleted: {why}" for name, why in failed.items() if why), REPEAT)


def is_there(answer: Described) -> bool:
    """A coordinator that does not answer now has answered that it is deleted."""
    return isinstance(answer, GroupState)


def show(rows: list[Row], is_done: bool, json_output: bool) -> None:
    if json_output:
        print(json.dumps(rows))
        return
    show_groups(rows, DELETED_GROUPS, False)
    if not is_done and rows:
        show_unchanged()
