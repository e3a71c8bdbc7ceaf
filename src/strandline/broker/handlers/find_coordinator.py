"""FindCoordinator: a group's coordinator leads the partition of `__consumer_offsets` that the group's id hashes to."""

from strandline.base.effects import Effect, Endpoint, Received, Reply
from strandline.base.errors import ErrorCode, message_of
from strandline.base.ids import NOBODY, OFFSETS_TOPIC, NodeId
from strandline.base.time import Instant
from strandline.broker.handlers.port import NodePort
from strandline.group.partitioning import partition_for
from strandline.wire.messages.groups.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP = 0
# Asked for a transaction coordinator, or any other that there is none of. librdkafka asks again every 500 ms for ever
# after any error but this and CLUSTER_AUTHORIZATION_FAILED; for it and for the Java client this one is fatal at once.
NO_COORDINATOR_OF_THIS_KIND = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
NO_COORDINATOR_MESSAGE = "This cluster has no coordinator of this kind: transactions are not supported."
NOWHERE = Endpoint("", -1)


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    request: FindCoordinatorRequest = received.message
    batched = received.to.api_version >= 4
    keys = request.coordinator_keys if batched else (request.key,)
    effects: list[Effect] = []
    if request.key_type == GROUP and node.image.topic_named(OFFSETS_TOPIC) is None:
        effects = node.create_missing_topics([OFFSETS_TOPIC], now)
    found = [find(node, received, request.key_type, key) for key in keys]
    if batched:
        effects.append(Reply(received.to, FindCoordinatorResponse(coordinators=tuple(found))))
    else:
        one = found[0]
        response = FindCoordinatorResponse(
            error_code=one.error_code,
            error_message=one.error_message,
            node_id=one.node_id,
            host=one.host,
            port=one.port,
        )
        effects.append(Reply(received.to, response))
    return effects


def find(node: NodePort, received: Received, key_type: int, key: str) -> Coordinator:
    if key_type != GROUP:
        return entry(key, NOBODY, NOWHERE, NO_COORDINATOR_OF_THIS_KIND, NO_COORDINATOR_MESSAGE)
    topic = node.image.topic_named(OFFSETS_TOPIC)
    if topic is None or not topic.partitions:
        return entry(key, NOBODY, NOWHERE, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = topic.partitions.get(partition_for(key, len(topic.partitions)))
    broker = node.image.brokers.get(partition.leader) if partition is not None else None
    if broker is None or broker.fenced or received.caller.listener not in broker.endpoints:
        return entry(key, NOBODY, NOWHERE, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return entry(key, broker.node_id, broker.endpoints[received.caller.listener], ErrorCode.NONE)


def entry(key: str, node_id: NodeId, at: Endpoint, error: ErrorCode, why: str | None = None) -> Coordinator:
    assert (error is ErrorCode.NONE) == (node_id != NOBODY), "a coordinator, or why there is none"
    return Coordinator(
        key=key,
        node_id=node_id,
        host=at.host,
        port=at.port,
        error_code=error,
        error_message=None if error is ErrorCode.NONE else why or message_of(error),
    )
