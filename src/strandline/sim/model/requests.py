"""The requests of brokers and operators that the model tries, as they come over the wire."""

from enum import Enum
from functools import cache

from strandline.base.ids import Uuid
from strandline.controller.configs import SET
from strandline.metadata.features import SUPPORTED_FEATURES, ranges
from strandline.metadata.image import RECOVERED, TOPIC_RESOURCE
from strandline.sim.model.state import (
    BROKER_EPOCH,
    LEADER_EPOCH,
    NEXT_OFFSET,
    PARTITION_EPOCH,
    TOPIC,
    TOPIC_ID,
    Ids,
)
from strandline.wire.messages.brokers import assign_replicas_to_dirs as assign
from strandline.wire.messages.brokers.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest, LostPartition, LostTopic
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.topics.elect_leaders import UNCLEAN, ElectLeadersRequest

OFFSET_OF_A_RESTART = 60  # of a registration since: an epoch that a proposal from before it cannot know

LOST = (LostTopic(topic_id=TOPIC_ID, partitions=(LostPartition(partition_index=0, cause=1),)),)
ANYBODY = ElectLeadersRequest(election_type=UNCLEAN, topic_partitions=None)


@cache
def moving(target: Ids | None) -> AlterPartitionReassignmentsRequest:
    """Null replicas cancel."""
    row = ReassignablePartition(partition_index=0, replicas=target)
    return AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=TOPIC, partitions=(row,)),))


@cache
def proposal(leader: int, isr: Ids, recovery: int) -> AlterPartitionRequest:
    return altering(leader, isr, recovery_state=recovery)


def altering(
    leader: int,
    isr: Ids,
    *,
    recovery_state: int = RECOVERED,
    leader_epoch: int = LEADER_EPOCH,
    partition_epoch: int = PARTITION_EPOCH,
    of_an_earlier_life: Ids = (),
    broker_epoch: int | None = None,
) -> AlterPartitionRequest:
    members = tuple(
        BrokerState(broker_id=n, broker_epoch=BROKER_EPOCH + n - OFFSET_OF_A_RESTART * (n in of_an_earlier_life))
        for n in isr
    )
    change = PartitionData(
        partition_index=0,
        leader_epoch=leader_epoch,
        new_isr_with_epochs=members,
        leader_recovery_state=recovery_state,
        partition_epoch=partition_epoch,
    )
    return AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=BROKER_EPOCH + leader if broker_epoch is None else broker_epoch,
        topics=(TopicData(topic_id=TOPIC_ID, partitions=(change,)),),
    )


class StaleProposal(Enum):
    """Each text goes on from "a proposal"."""

    EARLIER_LEADER_EPOCH = "of an earlier leader epoch"
    EARLIER_PARTITION_EPOCH = "of an earlier partition epoch"
    LATER_LEADER_EPOCH = "of a later leader epoch"
    LATER_PARTITION_EPOCH = "of a later partition epoch"
    LEADERS_EARLIER_LIFE = "of the leader's earlier life"
    FOLLOWERS_EARLIER_LIFE = "of a follower's earlier life"
    ANOTHER_BROKER = "of another broker"
    WITHOUT_LEADER = "without the leader"


@cache
def stale_proposal(leader: int, isr: Ids, how: StaleProposal, other: int) -> AlterPartitionRequest:
    match how:
        case StaleProposal.EARLIER_LEADER_EPOCH:
            return altering(leader, isr, leader_epoch=LEADER_EPOCH - 1)
        case StaleProposal.EARLIER_PARTITION_EPOCH:
            return altering(leader, isr, partition_epoch=PARTITION_EPOCH - 1)
        case StaleProposal.LATER_LEADER_EPOCH:
            return altering(leader, isr, leader_epoch=LEADER_EPOCH + 1)
        case StaleProposal.LATER_PARTITION_EPOCH:
            return altering(leader, isr, partition_epoch=PARTITION_EPOCH + 1)
        case StaleProposal.LEADERS_EARLIER_LIFE:
            return altering(leader, isr, broker_epoch=BROKER_EPOCH + leader - 1)
        case StaleProposal.FOLLOWERS_EARLIER_LIFE:
            return altering(leader, isr, of_an_earlier_life=tuple(n for n in isr if n != leader) or isr)
        case StaleProposal.ANOTHER_BROKER:
            return altering(other, isr) if other != leader else altering(leader, ())
        case _:
            return altering(leader, tuple(n for n in isr if n != leader))


@cache
def heartbeat(
    node: int, want_shut_down: bool = False, offline: tuple[Uuid, ...] = (), lost: bool = False
) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=node,
        broker_epoch=BROKER_EPOCH + node,
        current_metadata_offset=NEXT_OFFSET - 1,
        want_shut_down=want_shut_down,
        offline_log_dirs=offline,
        lost_replicas=LOST if lost else (),
    )


@cache
def registration(
    node: int, is_clean: bool, log_dirs: tuple[Uuid, ...], lost: bool = False
) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=node,
        incarnation_id=Uuid(bytes([node, 255] * 8)),
        features=ranges(SUPPORTED_FEATURES),
        previous_broker_epoch=BROKER_EPOCH + node if is_clean else -1,
        log_dirs=log_dirs,
        lost_replicas=LOST if lost else (),
    )


@cache
def lying(node: int, directory: Uuid) -> assign.AssignReplicasToDirsRequest:
    """A broker says where its replica lies."""
    topic = assign.TopicData(topic_id=TOPIC_ID, partitions=(assign.PartitionData(partition_index=0),))
    row = assign.DirectoryData(id=directory, topics=(topic,))
    return assign.AssignReplicasToDirsRequest(broker_id=node, broker_epoch=BROKER_EPOCH + node, directories=(row,))


@cache
def setting(key: str, value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=key, config_operation=SET, value=value)
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configs=(config,))
    return IncrementalAlterConfigsRequest(resources=(resource,))
