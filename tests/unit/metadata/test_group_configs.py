"""Values of a group that are each right, with the limits of a node whose file sets others than Kafka's."""

from collections.abc import Mapping

from tests.rows import each

from strandline.metadata.configs.group_configs import HEARTBEAT_INTERVAL, SESSION_TIMEOUT, why_not_together

WIDE = {
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.max.session.timeout.ms": 100_000,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.max.heartbeat.interval.ms": 100_000,
}
TOO_SHORT = f"{SESSION_TIMEOUT} must be greater than {HEARTBEAT_INTERVAL}"


@each(
    ("own", "node", "why"),
    [
        ({}, {}, None),
        ({}, WIDE, None),
        ({SESSION_TIMEOUT: "1000", HEARTBEAT_INTERVAL: "999"}, WIDE, None),
        ({SESSION_TIMEOUT: "1000", HEARTBEAT_INTERVAL: "1000"}, WIDE, TOO_SHORT),
        ({HEARTBEAT_INTERVAL: "45000"}, WIDE, TOO_SHORT),
        ({HEARTBEAT_INTERVAL: "45000"}, {**WIDE, "group.consumer.session.timeout.ms": 45_001}, None),
        ({SESSION_TIMEOUT: "5000"}, WIDE, TOO_SHORT),
        ({SESSION_TIMEOUT: "5000"}, {**WIDE, "group.consumer.heartbeat.interval.ms": 4999}, None),
        (
            {SESSION_TIMEOUT: "999"},
            WIDE,
            f"{SESSION_TIMEOUT} must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            {HEARTBEAT_INTERVAL: "100001"},
            WIDE,
            f"{HEARTBEAT_INTERVAL} must be less than or equal to group.consumer.max.heartbeat.interval.ms",
        ),
    ],
)
def test_the_nodes_limits_and_its_own_values_count(
    own: Mapping[str, str], node: Mapping[str, int], why: str | None
) -> None:
    assert why_not_together(own, node) == why
