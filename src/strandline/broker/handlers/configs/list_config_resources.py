"""ListConfigResources: the names of resources that can have configurations (KIP-1142).

Topics and brokers are all listed, groups and subscriptions to clients' metrics if something was set for them. A node
has no loggers whose levels could change, so that list is empty.
"""

from collections.abc import Iterable

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.broker.handlers.port import NodePort
from strandline.metadata.image import Image
from strandline.metadata.records import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from strandline.wire.messages.cluster.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

LISTED = (GROUP_RESOURCE, CLIENT_METRICS_RESOURCE, BROKER_LOGGER_RESOURCE, BROKER_RESOURCE, TOPIC_RESOURCE)


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del now
    request: ListConfigResourcesRequest = received.message
    wanted = request.resource_types or LISTED
    if received.to.api_version == 0:
        wanted = (CLIENT_METRICS_RESOURCE,)
    if not set(wanted) <= set(LISTED):
        return [Reply(received.to, ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))]
    assert wanted and set(wanted) <= set(LISTED), "nothing asked for means all of them"
    resources = [
        ConfigResource(resource_name=name, resource_type=kind)
        for kind in LISTED
        if kind in wanted
        for name in names_of(node.image, kind)
    ]
    return [Reply(received.to, ListConfigResourcesResponse(config_resources=tuple(resources)))]


def names_of(image: Image, kind: int) -> Iterable[str]:
    if kind == TOPIC_RESOURCE:
        return sorted(image.topic_ids)
    if kind == BROKER_RESOURCE:
        return [str(node) for node in sorted(image.brokers) if image.is_active(node)]
    if kind == BROKER_LOGGER_RESOURCE:
        return []
    return sorted(name for resource, name in image.configs if resource == kind)
