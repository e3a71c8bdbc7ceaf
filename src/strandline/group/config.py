"""What a broker's configuration says about groups. The keys are Kafka's (`metadata/configs/node_configs.py`)."""

from strandline.base.value import Value

UNIFORM, RANGE = "uniform", "range"
UPGRADE, DOWNGRADE, BIDIRECTIONAL, DISABLED = "upgrade", "downgrade", "bidirectional", "disabled"


class GroupConfig(Value, frozen=True):
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3000
    max_size: int = (1 << 31) - 1
    offsets_retention_check_ms: int = 600_000
    offsets_retention_ms: int = 7 * 24 * 3600 * 1000
    offset_metadata_max_bytes: int = 4096
    # of the consumer protocol (KIP-848)
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5000
    consumer_max_size: int = (1 << 31) - 1
    consumer_assignors: tuple[str, ...] = (UNIFORM, RANGE)  # the first one is the default
    consumer_migration_policy: str = BIDIRECTIONAL
    is_consumer_protocol_enabled: bool = True

    def __post_init__(self) -> None:
        assert (
            self.min_session_timeout_ms > 0 and self.max_session_timeout_ms > 0 and self.consumer_session_timeout_ms > 0
        )
        assert self.consumer_heartbeat_interval_ms > 0
        assert self.max_size > 0 and self.consumer_max_size > 0, "a group has room for somebody"
        assert self.consumer_assignors, "the first one is the default"
        assert self.offsets_retention_check_ms > 0, "or a node would do nothing else"
        assert self.min_session_timeout_ms <= self.max_session_timeout_ms
        assert self.offset_metadata_max_bytes >= 0
