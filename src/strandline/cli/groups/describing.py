"""`strandline groups describe`: a group's coordinator, state, assignor and number of members."""

from strandline.cli.connect import HERE, Json, OfCluster
from strandline.cli.groups.choosing import All, Ids, described
from strandline.cli.groups.columns import DESCRIBED, show_groups
from strandline.diagnosis.groups.rows import group_json


def describe(
    *, group: Ids = None, all_groups: All = False, cluster: OfCluster = HERE, json_output: Json = False
) -> None:
    """Show who coordinates a group, its state, and how many members it has."""
    _, states = described(cluster, group, all_groups)
    show_groups([group_json(state) for state in states], DESCRIBED, json_output)
