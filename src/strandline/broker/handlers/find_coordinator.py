"""FindCoordinator: the coordinator of a group, or of a transactional id, leads the partition of an internal topic that
the group's id or the transactional id hashes to. The topic is created when it is first needed."""

from strandline.base.effects import Effect, Endpoint, Received, Reply
from strandline.base.errors import ErrorCode, message_of
from strandline.base.ids import NOBODY, OFFSETS_TOPIC, TRANSACTION_TOPIC, NodeId
from strandline.base.time import Instant
from strandline.broker.handlers.port import NodePort
from strandline.coordination.partitioning import coordinator_of, is_too_long
from strandline.wire.messages.groups.find_coordinator import (
    GROUP,
    TRANSACTION,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

TOPIC_OF = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTION_TOPIC}
NOWHERE = Endpoint("", -1)


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    request: FindCoordinatorRequest = received.message
    batched = received.to.api_version >= 4
    keys = request.coordinator_keys if batched else (request.key,)
    effects: list[Effect] = []
    name = TOPIC_OF.get(request.key_type)
    if name is not None and node.image.topic_named(name) is None:
        effects = node.create_missing_topics([name], now)
    found = [find(node, received, name, key) for key in keys]
    assert batched or len(found) == 1, "older versions name one key"
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


def find(node: NodePort, received: Received, name: str | None, key: str) -> Coordinator:
    """`name`: the topic of the coordinators that are asked for; None if there are none of that kind."""
    if name is None or is_too_long(key):
        return entry(key, NOBODY, NOWHERE, ErrorCode.INVALID_REQUEST)
    node_id = coordinator_of(key, name, node.image)
    at = None if node_id == NOBODY else node.image.brokers[node_id].endpoints.get(received.caller.listener)
    if at is None:
        return entry(key, NOBODY, NOWHERE, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return entry(key, node_id, at, ErrorCode.NONE)


def entry(key: str, node_id: NodeId, at: Endpoint, error: ErrorCode) -> Coordinator:
    assert (error is ErrorCode.NONE) == (node_id != NOBODY), "a coordinator, or why there is none"
    return Coordinator(
        key=key,
        node_id=node_id,
        host=at.host,
        port=at.port,
        error_code=error,
        error_message=None if error is ErrorCode.NONE else message_of(error),
    )
