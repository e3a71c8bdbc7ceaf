"""ApiVersions: what this listener speaks."""

from strandline.base.effects import Effect, Received, Reply
from strandline.base.time import Instant
from strandline.broker.handlers.port import NodePort
from strandline.metadata.features import SUPPORTED_FEATURES
from strandline.wire.api import advertised_versions
from strandline.wire.messages.cluster.api_versions import (
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

FROM_ZERO = 4  # the version of the first clients that take a range which begins with 0


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del now
    has_telemetry = node.broker is not None and node.broker.telemetry.is_on
    if node.broker is not None and has_telemetry:
        node.broker.telemetry.introduced(received)
    features = sorted(node.image.features.items())
    assert all(node.image.features.get(name, 0) <= high for name, (_, high) in SUPPORTED_FEATURES.items()), (
        "levels are in range"
    )
    response = ApiVersionsResponse(
        api_keys=advertised_versions(
            on_controller=node.is_controller_listener(received.caller.listener), has_telemetry=has_telemetry
        ),
        supported_features=tuple(
            # A finalized level is within the range, also if another program set it.
            SupportedFeatureKey(name=name, min_version=min(low, node.image.features.get(name, low)), max_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
            if low > 0 or received.to.api_version >= FROM_ZERO
        ),
        finalized_features_epoch=node.applied_end - 1,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level) for name, level in features
        ),
    )
    return [Reply(received.to, response)]
