"""What the cluster's metadata says about the consumer protocol: whether it is on, and the timeouts of one group."""

from strandline.group.config import GroupConfig
from strandline.metadata.configs.group_configs import GROUP_CONFIGS, HEARTBEAT_INTERVAL, SESSION_TIMEOUT
from strandline.metadata.features import GROUP_FEATURE
from strandline.metadata.image import Image
from strandline.metadata.records import GROUP_RESOURCE


def is_consumer_protocol_finalized(image: Image) -> bool:
    """Is `group.version` 1 or higher? If not, ConsumerGroupHeartbeat gets UNSUPPORTED_VERSION (KIP-848). A cluster that
    began before there was this feature has level 0 until somebody raises it, as in Kafka."""
    return image.features.get(GROUP_FEATURE, 0) >= 1


def consumer_config(image: Image, group_id: str, config: GroupConfig) -> tuple[int, int]:
    """(session timeout, heartbeat interval) of this group, in milliseconds: its own, else the broker's. As in Kafka,
    limits count when a value is set, and not for values that were set before."""
    own = image.configs.get((GROUP_RESOURCE, group_id), {})
    found = []
    for name, default in (
        (SESSION_TIMEOUT, config.consumer_session_timeout_ms),
        (HEARTBEAT_INTERVAL, config.consumer_heartbeat_interval_ms),
    ):
        value = GROUP_CONFIGS[name].parse(own[name]) if name in own else default
        assert isinstance(value, int)
        found.append(value)
    return found[0], found[1]
