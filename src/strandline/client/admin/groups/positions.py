"""Where groups are, as far as it can be found out: committed offsets, beside the logs' ends."""

from collections.abc import Iterable, Mapping

from strandline.client.admin.groups.described import GroupState
from strandline.client.admin.groups.offsets import Position, committed_by, ends_of
from strandline.client.admin.partitions import PartitionState, Place, describe_partitions
from strandline.client.ask import Servers
from strandline.client.cluster import Cluster as Connected


def positions(
    connected: Connected, state: GroupState, states: Mapping[Place, PartitionState], also: Iterable[Place] = ()
) -> list[Position]:
    """Of all partitions for which the group has committed an offset, that its members read, and `also` these.
    `states`: of the partitions of these topics."""
    committed = committed_by(connected, state.group_id)
    places = sorted({*committed, *state.owners(), *also})
    ends = ends_of(connected, places, states)
    return [Position(at, committed.get(at), ends[at]) for at in places]


def states_of(bootstrap: Servers, topics: Iterable[str]) -> dict[Place, PartitionState]:
    names = sorted(set(topics))
    return {row.at: row for row in describe_partitions(bootstrap, names)} if names else {}


def topics_of(connected: Connected, state: GroupState) -> set[str]:
    return {at.topic for at in (*committed_by(connected, state.group_id), *state.owners())}
