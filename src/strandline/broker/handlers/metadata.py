"""Metadata: which brokers there are, and who leads what. Answered from the committed image."""

from msgspec.structs import replace

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import INTERNAL_TOPICS, NOBODY, ZERO_UUID, NodeId
from strandline.base.operations import ON_CLUSTER, ON_TOPIC, UNKNOWN_OPERATIONS
from strandline.base.time import Instant
from strandline.broker.handlers.port import NodePort
from strandline.metadata.image import Image, Partition, Topic
from strandline.metadata.topic_names import why_illegal
from strandline.wire.messages.topics.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

BY_ID = 12  # the version from which topics may be asked for by id


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    request: MetadataRequest = received.message
    version = received.to.api_version
    image = node.image
    listener = received.caller.listener
    topics = refused_topics(request) if has_early_ids(request, version) else chosen_topics(image, request, version)
    suspects = node.broker.suspects if node.broker is not None else None
    if suspects is not None and suspects.until:
        leaders = {partition.leader_id for topic in topics for partition in topic.partitions}
        if suspects.hold(received, leaders, now):
            return []
    if request.include_topic_authorized_operations:
        topics = [replace(topic, topic_authorized_operations=ON_TOPIC) for topic in topics]
    response = MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(
                node_id=broker.node_id,
                host=broker.endpoints[listener].host,
                port=broker.endpoints[listener].port,
                rack=broker.rack,
            )
            for broker in image.brokers.values()
            if not broker.fenced and listener in broker.endpoints
        ),
        cluster_id=node.cluster_id,
        controller_id=controller_to_name(node),
        topics=tuple(topics),
        cluster_authorized_operations=(
            ON_CLUSTER if request.include_cluster_authorized_operations else UNKNOWN_OPERATIONS
        ),
    )
    return [Reply(received.to, response)]


def create_missing(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    """When the request comes, and not when it is answered: who may create what is judged then, and a topic that is
    deleted in between is not created anew."""
    request: MetadataRequest = received.message
    if not request.allow_auto_topic_creation or has_early_ids(request, received.to.api_version):
        return []
    names = dict.fromkeys(asked.name or "" for asked in request.topics or () if asked.topic_id == ZERO_UUID)
    missing = [name for name in names if node.image.topic_named(name) is None and why_illegal(name) is None]
    return node.create_missing_topics(missing, now, received) if missing else []


def controller_to_name(node: NodePort) -> NodeId:
    """Clients send admin requests there; any broker forwards them, so an unfenced one will do."""
    if node.image.is_active(node.active_controller):
        return node.active_controller
    return next((b.node_id for b in node.image.brokers.values() if not b.fenced), NOBODY)


def has_early_ids(request: MetadataRequest, version: int) -> bool:
    """Versions 10 and 11 have a field for topic ids, but their answers cannot go without a name."""
    return version < BY_ID and any(t.name is None or t.topic_id != ZERO_UUID for t in request.topics or ())


def refused_topics(request: MetadataRequest) -> list[MetadataResponseTopic]:
    refused = [
        MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=t.name or "", topic_id=t.topic_id)
        for t in request.topics or ()
    ]
    assert refused, "it names topics"
    return refused


def asks_for_no_topic(request: MetadataRequest, version: int) -> bool:
    """A client that wants to know the brokers only. In version 0 an empty array asks for all topics."""
    return request.topics is not None and not request.topics and version > 0


def chosen_topics(image: Image, request: MetadataRequest, version: int) -> list[MetadataResponseTopic]:
    """Null (v0: empty) asks for all."""
    if request.topics is None or (version == 0 and not request.topics):
        return [describe(image, topic) for topic in image.topics.values()]
    described: list[MetadataResponseTopic] = []
    for asked in request.topics:
        by_id = asked.topic_id != ZERO_UUID
        topic = image.topics.get(asked.topic_id) if by_id else image.topic_named(asked.name or "")
        if topic is not None:
            described.append(describe(image, topic))
        elif by_id:
            error = ErrorCode.UNKNOWN_TOPIC_ID
            described.append(MetadataResponseTopic(error_code=error, name=None, topic_id=asked.topic_id))
        else:
            name = asked.name or ""
            valid = why_illegal(name) is None
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION
            described.append(MetadataResponseTopic(error_code=error, name=name, is_internal=name in INTERNAL_TOPICS))
    assert len(described) == len(request.topics)
    return described


def describe(image: Image, topic: Topic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(describe_partition(image, index, p) for index, p in topic.partitions.items()),
    )


def describe_partition(image: Image, index: int, partition: Partition) -> MetadataResponsePartition:
    assert index >= 0
    led = partition.leader != NOBODY
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if led else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=offline_replicas(image, partition),
    )


def offline_replicas(image: Image, partition: Partition) -> tuple[NodeId, ...]:
    """Of brokers that are gone or fenced, and in directories that are offline."""
    return tuple(n for n in partition.replicas if not image.is_online(n, partition) or image.brokers[n].fenced)
