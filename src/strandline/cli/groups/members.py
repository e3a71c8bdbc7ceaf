"""`strandline groups members`: who is in a group, and which partitions each member reads."""

from strandline.cli.connect import HERE, Json, OfCluster
from strandline.cli.groups.choosing import All, Ids, described
from strandline.cli.groups.columns import MEMBERS, OF_CONSUMERS, show_groups
from strandline.client.admin.groups.described import CONSUMER
from strandline.diagnosis.groups.rows import member_json


def members(
    *, group: Ids = None, all_groups: All = False, cluster: OfCluster = HERE, json_output: Json = False
) -> None:
    """Show the members of a group: client, host, and the partitions that each reads.

    Members of the consumer protocol also have an epoch, and the partitions that they are to read.
    """
    _, states = described(cluster, group, all_groups)
    is_new = any(state.type == CONSUMER for state in states)
    rows = [member_json(state, member) for state in states for member in state.members]
    show_groups(rows, MEMBERS | OF_CONSUMERS if is_new else MEMBERS, json_output)
