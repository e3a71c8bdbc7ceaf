"""The settings of one log, in Kafka's names and with Kafka's defaults."""

from collections.abc import Callable

from strandline.base.value import Value

DAY_MS = 24 * 3600 * 1000
LONG_MAX = (1 << 63) - 1


class LogConfig(Value, frozen=True):
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_bytes: int = -1
    retention_ms: int = 7 * DAY_MS
    max_message_bytes: int = 1048588
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = 3600 * 1000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    cleanup_policy: tuple[str, ...] = ("delete",)
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    delete_retention_ms: int = DAY_MS
    producer_id_expiration_ms: int = DAY_MS  # a setting of the node, not of a topic

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def roll_ms(self) -> int:
        """A segment in which records are appended is never compacted, so it may not be older than they may be."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms

    @classmethod
    def of(cls, setting: Callable[[str], object]) -> "LogConfig":
        """From topic configuration: `setting` gives the parsed value of a key."""
        values = {name: setting(name.replace("_", ".")) for name in cls.__struct_fields__}
        values["segment_bytes"] = setting("internal.segment.bytes") or values["segment_bytes"]
        return cls(**values)  # type: ignore[arg-type]  # the table of keys has these types
