"""`strandline groups lag`: how far a group is in each partition, and how far it is behind."""

from strandline.cli.connect import HERE, Json, OfCluster
from strandline.cli.groups.choosing import INCOMPLETE, All, Ids, Topics, described
from strandline.cli.groups.columns import POSITIONS, show_groups
from strandline.client.admin.groups.positions import positions, states_of, topics_of
from strandline.client.admin.groups.scope import is_in, places_in, scope_of
from strandline.client.cluster import Cluster as Connected
from strandline.diagnosis.groups.rows import position_json


def lag(
    *,
    group: Ids = None,
    all_groups: All = False,
    topic: Topics = None,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> int:
    """Show a group's committed offset and lag in each partition, the log's ends, and the member that reads it.

    Exit status 3 if the ends of a log are not known. `strandline pipeline lag` watches groups for longer.
    """
    scope = scope_of(topic or ())
    places_in(cluster.config, scope)
    _, groups = described(cluster, group, all_groups)
    rows = []
    with Connected(cluster.config) as connected:
        for state in groups:
            owners = state.owners()
            found = positions(connected, state, states_of(cluster.config, topics_of(connected, state)))
            shown = [position for position in found if not scope or is_in(position.at, scope)]
            rows += [position_json(state.group_id, position, owners.get(position.at)) for position in shown]
    show_groups(rows, POSITIONS, json_output)
    return INCOMPLETE if any(row["error"] for row in rows) else 0
