"""`strandline groups delete-offsets`: offsets of topics that a group does not read any more.

Without --execute it shows the plan and changes nothing.
"""

import json
import sys

from strandline.cli.connect import HERE, Json, OfCluster, fail, misuse
from strandline.cli.groups.choosing import Ids, Topics, described
from strandline.cli.groups.columns import DELETED_OFFSETS, show_groups
from strandline.cli.groups.executing import REPEAT, DryRun, Execute, check_one, show_unchanged, warn
from strandline.cli.show import Row
from strandline.client.admin.groups.described import GroupState
from strandline.client.admin.groups.offsets import committed_by
from strandline.client.admin.groups.offsets import delete_offsets as ask_to_delete
from strandline.client.admin.groups.scope import places_in, scope_of
from strandline.client.cluster import Cluster as Connected
from strandline.diagnosis.groups.plans import readers_of


def delete_offsets(
    *,
    group: Ids = None,
    topic: Topics = None,
    execute: Execute = False,
    dry_run: DryRun = False,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Plan which committed offsets of a group are deleted, and with --execute delete them.

    No member may read these topics. If the group reads one later, it begins where auto.offset.reset says.
    """
    check_one(execute, dry_run)
    if not topic:
        misuse(
            "no topic is named", "name it with --topic; `strandline groups delete` deletes a group with all its offsets"
        )
    if not group or len(group) > 1:
        misuse(f"{len(group or ())} groups are named", "name one with --group")
    brokers, (state,) = described(cluster, group, False)
    places = places_in(cluster.config, scope_of(topic))
    with Connected(cluster.config) as connected:
        committed = committed_by(connected, state.group_id)
        doomed = [at for at in places if at in committed]
        if execute:
            check_unread(state, {at.topic for at in places})
        failed = ask_to_delete(brokers[state.coordinator], state.group_id, doomed) if execute and doomed else {}
        left = committed_by(connected, state.group_id) if execute else {}
    rows: list[Row] = []
    for at in doomed:
        error = failed.get(at) or ("it is there again: does a consumer run?" if at in left else None)
        outcome = "failed" if error else "deleted" if execute else "planned"
        row = {"group": state.group_id, "topic": at.topic, "partition": at.partition, "offset": committed[at].offset}
        rows.append({**row, "outcome": outcome, "error": error})
    show(rows, execute, json_output)
    if not execute:
        warn_read(state, {at.topic for at in places})
    if any(row["error"] for row in rows):
        why = "; ".join(f"{row['topic']}-{row['partition']}: {row['error']}" for row in rows if row["error"])
        fail(why, REPEAT)


def why_read(state: GroupState, topics: set[str]) -> list[tuple[str, str]]:
    return [
        (
            f"group '{state.group_id}' reads topic '{topic}': {'; '.join(readers)}",
            "stop these consumers, or take the topic out of their subscriptions, and repeat the command",
        )
        for topic in sorted(topics)
        if (readers := readers_of(state, topic))
    ]


def check_unread(state: GroupState, topics: set[str]) -> None:
    """Ends the command if a member reads one of them."""
    for problem, advice in why_read(state, topics):
        fail(problem, advice)


def warn_read(state: GroupState, topics: set[str]) -> None:
    for problem, advice in why_read(state, topics):
        warn(problem, advice)


def show(rows: list[Row], is_done: bool, json_output: bool) -> None:
    if json_output:
        print(json.dumps(rows))
        return
    show_groups(rows, DELETED_OFFSETS, False)
    if not rows:
        print("there is nothing to delete: the group has committed no offsets there", file=sys.stderr)
    elif not is_done:
        show_unchanged()
