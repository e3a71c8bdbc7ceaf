"""Configurations of resources, the cluster's description, and what only Strandline serves."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from strandline.base.effects import Received
from strandline.base.errors import ErrorCode, message_of
from strandline.broker.authorizing.refusals import described_log
from strandline.broker.authorizing.topics import cluster_operations
from strandline.broker.authorizing.verdict import (
    FAILED_BY_TYPE,
    Judge,
    Split,
    Verdict,
    may,
    may_topic,
    parted,
    refuse,
    with_rows,
)
from strandline.broker.handlers.describe_losses import LIMIT_MAX
from strandline.broker.handlers.port import NodePort
from strandline.metadata.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from strandline.security.acls.authorizer import Rights
from strandline.wire.messages.cluster.describe_cluster import DescribeClusterRequest
from strandline.wire.messages.own.describe_losses import DescribeLossesRequest, DescribeLossesResponse
from strandline.wire.messages.own.get_replica_log_info import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    TopicPartitions,
)

DESCRIBE = AclOperation.DESCRIBE

# Kafka's numbers for resources that have configurations, and whose permission counts.
CONFIGURED: dict[int, ResourceType] = {
    2: ResourceType.TOPIC,
    4: ResourceType.CLUSTER,  # a broker
    8: ResourceType.CLUSTER,  # a broker's loggers
    16: ResourceType.CLUSTER,  # metrics of clients
    32: ResourceType.GROUP,
}


def configs(operation: AclOperation, answers: type, field: str, row_type: type) -> Judge:
    """Those of a topic or a group need the operation on it, all others need it on the cluster."""

    def judge(node: NodePort, received: Received, rights: Rights) -> Verdict:
        del node
        kept, refused = parted(
            received.message.resources,
            lambda r: is_configurable(rights, operation, r.resource_type, r.resource_name),
        )
        rows = [refused_configs(resource, row_type) for resource in refused]
        return with_rows(received, {"resources": kept}, answers, field, rows, any_left=bool(kept))

    return judge


def is_configurable(rights: Rights, operation: AclOperation, kind: int, name: str) -> bool:
    resource_type = CONFIGURED.get(kind)
    if resource_type is None:
        return True  # rejected, whoever asks
    return rights.allows(operation, resource_type, CLUSTER_NAME if resource_type == ResourceType.CLUSTER else name)


def refused_configs(resource: Any, row_type: Callable[..., Any]) -> Any:
    error = FAILED_BY_TYPE[CONFIGURED[resource.resource_type]]
    return row_type(
        error_code=error,
        error_message=message_of(error),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def describe_cluster(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """The brokers are for everybody: a client could not begin without them."""
    del node
    request: DescribeClusterRequest = received.message
    if not request.include_cluster_authorized_operations:
        return received

    def merge(response: Any) -> Any:
        if response.error_code:
            return response
        return replace(response, cluster_authorized_operations=cluster_operations(rights, is_wanted=True))

    return Split(received, merge)


def describe_controllers(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """On a controllers' listener it needs Alter on the cluster, as in Kafka: only operators ask controllers."""
    if not may(rights, AclOperation.ALTER):
        return refuse(received, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return describe_cluster(node, received, rights)


# --- of our own


def describe_losses(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """Who may describe the cluster sees all entries of the ledger, everybody else those of topics that it may
    describe, and nothing about the broker as a whole."""
    del node
    request: DescribeLossesRequest = received.message
    if may(rights, DESCRIBE):
        return received
    limit = max(1, request.limit)

    def merge(response: DescribeLossesResponse) -> DescribeLossesResponse:
        found = [loss for loss in response.losses if may_topic(rights, DESCRIBE, loss.topic)]
        latest = found[-limit:]
        return replace(response, losses=tuple(latest), left_out=len(found) - len(latest), lost_records=0, unread=())

    return Split(replace(received, message=replace(request, limit=LIMIT_MAX)), merge)


def replica_logs(node: NodePort, received: Received, rights: Rights) -> Verdict:
    """ClusterAction or Describe on the cluster, or else Describe on each topic."""
    request: GetReplicaLogInfoRequest = received.message
    if may(rights, AclOperation.CLUSTER_ACTION) or may(rights, DESCRIBE):
        return received
    asked = request.topic_partitions
    if asked is None:
        hosted: dict[Any, list[int]] = {}
        for at in node.image.hosted.get(node.me, ()):
            hosted.setdefault(at.topic_id, []).append(at.partition)
        asked = tuple(TopicPartitions(topic_id=topic_id, partitions=tuple(found)) for topic_id, found in hosted.items())
    kept, refused = parted(asked, lambda topic: may_see_logs(node, topic, rights))
    rows = (
        []
        if request.topic_partitions is None
        else [described_log(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in refused]
    )
    left = replace(received, message=replace(request, topic_partitions=kept))
    field = "topic_partition_log_info_list"
    return with_rows(left, {}, GetReplicaLogInfoResponse, field, rows, any_left=True)


def may_see_logs(node: NodePort, topic: TopicPartitions, rights: Rights) -> bool:
    known = node.image.topics.get(topic.topic_id)
    return known is None or may_topic(rights, DESCRIBE, known.name)
