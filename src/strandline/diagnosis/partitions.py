"""Partitions as JSON and in words, and as the controller has them."""

from collections.abc import Iterable
from typing import Any

from strandline.base.ids import LeaderEpoch, NodeId
from strandline.client.admin.partitions import PartitionState
from strandline.metadata.registrations import MIGRATING_DIRECTORY, Partition, nodes


def as_json(state: PartitionState) -> dict[str, Any]:
    return {
        "topic": state.at.topic,
        "partition": state.at.partition,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "effective_min_isr": state.min_isr,
        "elr": list(state.elr),
        "last_known_elr": list(state.last_known_elr),
        "last_known_leader": state.last_known_leader,
        "leader_recovery_state": recovery(state),
        "offline": list(state.offline),
        "adding": list(state.adding),
        "removing": list(state.removing),
        "recovery_strategy": state.strategy,
    }


def recovery(state: PartitionState) -> str:
    return "recovering" if state.is_recovering else "recovered"


def registered(state: PartitionState) -> Partition:
    """As the controller has it, as far as clients see the metadata."""
    return Partition(
        replicas=nodes(state.replicas),
        directories=(MIGRATING_DIRECTORY,) * len(state.replicas),
        isr=nodes(state.isr),
        leader=NodeId(state.leader),
        leader_epoch=LeaderEpoch(state.leader_epoch),
        removing_replicas=nodes(state.removing),
        adding_replicas=nodes(state.adding),
        elr=nodes(state.elr),
        last_known_elr=nodes(state.last_known_elr),
        last_known_leader=NodeId(state.last_known_leader),
    )


def numbers(nodes: Iterable[int]) -> str:
    return ",".join(map(str, nodes))


def brokers(nodes: Iterable[int]) -> str:
    """ "broker 2", "brokers 2,3"."""
    nodes = list(nodes)
    return f"broker{'' if len(nodes) == 1 else 's'} {numbers(nodes)}"
