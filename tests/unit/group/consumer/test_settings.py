"""The timeouts of a group: its own, or the broker's."""

from strandline.group.config import GroupConfig
from strandline.group.consumer.settings import consumer_config
from strandline.metadata.image import GROUP_RESOURCE, TOPIC_RESOURCE, Image
from strandline.metadata.records import ConfigRecord


def test_each_timeout_is_the_groups_or_the_brokers() -> None:
    config = GroupConfig(consumer_session_timeout_ms=50_000, consumer_heartbeat_interval_ms=6000)
    image = Image()
    seen = [consumer_config(image, "g", config)]
    for kind, group, name, value in (
        (TOPIC_RESOURCE, "g", "consumer.session.timeout.ms", "1"),
        (GROUP_RESOURCE, "h", "consumer.session.timeout.ms", "2"),
        (GROUP_RESOURCE, "g", "consumer.session.timeout.ms", "60000"),
        (GROUP_RESOURCE, "g", "consumer.heartbeat.interval.ms", "15000"),
        (GROUP_RESOURCE, "g", "consumer.session.timeout.ms", None),
    ):
        image.apply(ConfigRecord(resource_type=kind, resource_name=group, name=name, value=value))
        seen.append(consumer_config(image, "g", config))
    assert seen == [*[(50_000, 6000)] * 3, (60_000, 6000), (60_000, 15_000), (50_000, 15_000)]
