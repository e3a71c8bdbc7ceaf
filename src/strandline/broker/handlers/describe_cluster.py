"""DescribeCluster: the brokers (or the controllers, KIP-919) by id and endpoint."""

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode, message_of
from strandline.base.operations import ON_CLUSTER, UNKNOWN_OPERATIONS
from strandline.base.time import Instant
from strandline.broker.handlers.metadata import controller_to_name
from strandline.broker.handlers.port import NodePort
from strandline.wire.messages.cluster.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del now
    request: DescribeClusterRequest = received.message
    asked = request.endpoint_type if received.to.api_version >= 1 else BROKERS
    here = CONTROLLERS if node.is_controller_listener(received.caller.listener) else BROKERS
    if asked not in (BROKERS, CONTROLLERS):
        return refuse(received, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)
    if asked != here:
        return refuse(received, ErrorCode.MISMATCHED_ENDPOINT_TYPE)
    response = DescribeClusterResponse(
        cluster_id=node.cluster_id,
        endpoint_type=here,
        controller_id=node.active_controller if here == CONTROLLERS else controller_to_name(node),
        brokers=controllers(node) if here == CONTROLLERS else brokers(node, received, request),
        cluster_authorized_operations=(
            ON_CLUSTER if request.include_cluster_authorized_operations else UNKNOWN_OPERATIONS
        ),
    )
    return [Reply(received.to, response)]


def refuse(received: Received, error: ErrorCode) -> list[Effect]:
    assert error is not ErrorCode.NONE
    return [Reply(received.to, DescribeClusterResponse(error_code=error, error_message=message_of(error)))]


def brokers(node: NodePort, received: Received, request: DescribeClusterRequest) -> tuple[DescribeClusterBroker, ...]:
    listener = received.caller.listener
    return tuple(
        DescribeClusterBroker(
            broker_id=b.node_id,
            host=b.endpoints[listener].host,
            port=b.endpoints[listener].port,
            rack=b.rack,
            is_fenced=b.fenced,
        )
        for b in node.image.brokers.values()
        if listener in b.endpoints and (not b.fenced or request.include_fenced_brokers)
    )


def controllers(node: NodePort) -> tuple[DescribeClusterBroker, ...]:
    assert node.voters, "a quorum has voters"
    return tuple(
        DescribeClusterBroker(broker_id=voter, host=at.host, port=at.port, rack=None)
        for voter, at in node.voters.items()
    )
