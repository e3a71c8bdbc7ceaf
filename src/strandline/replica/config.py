"""What a broker's replicas are configured with. Defaults are Kafka's."""

from strandline.base.answer_memory import ANSWERS_BYTES_MAX
from strandline.base.ids import Uuid
from strandline.base.value import Value


class LogDir(Value, frozen=True):
    """One of `log.dirs`, with the id from its meta.properties."""

    path: str
    directory_id: Uuid


class ReplicaConfig(Value, frozen=True):
    lag_time_max_ms: int = 30_000
    fetch_wait_max_ms: int = 500
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 1 << 20  # per partition, of a follower's fetch
    fetch_response_max_bytes: int = 10 << 20
    fetch_backoff_ms: int = 1_000
    fetch_retry_ms: int = 100  # when the leader is likely just not there yet: it restarts, or its image lags
    fetch_timeout_ms: int = 30_000
    high_watermark_checkpoint_interval_ms: int = 5_000
    recovery_point_checkpoint_interval_ms: int = 60_000
    log_start_checkpoint_interval_ms: int = 60_000
    flush_scheduler_interval_ms: int = (1 << 63) - 1  # how often logs are looked at whose flush.ms is over
    retention_check_interval_ms: int = 300_000
    answer_bytes_max: int = 55 << 20  # of any Fetch answer, whatever the client asks for
    queued_answer_bytes_max: int = ANSWERS_BYTES_MAX  # of all answers that clients have not taken yet
    fetch_session_slots: int = 1_000
    fetch_session_eviction_ms: int = 120_000
    high_watermark_delay_ms: int = 25  # how long a follower may not know the high watermark when nothing else is new
    alter_partition_retry_ms: int = 50
    alter_partition_timeout_ms: int = 30_000
    internal_append_timeout_ms: int = 5_000
    replica_selector: str = ""  # the class name that Kafka has for it; empty: consumers read from leaders only
    leader_throttled_rate: int = (1 << 63) - 1  # bytes per second
    follower_throttled_rate: int = (1 << 63) - 1
    alter_log_dirs_rate: int = (1 << 63) - 1
    alter_log_dirs_windows: int = 11
    alter_log_dirs_window_ms: int = 1_000
    quota_windows: int = 11
    quota_window_ms: int = 1_000
    inter_broker_listener: str = "PLAINTEXT"

    def __post_init__(self) -> None:
        assert self.lag_time_max_ms > 0, "or no follower would be in sync"
        assert self.high_watermark_checkpoint_interval_ms > 0 and self.retention_check_interval_ms > 0
        assert self.answer_bytes_max > 0 and self.queued_answer_bytes_max > 0
        assert self.fetch_timeout_ms > 0 and self.alter_partition_timeout_ms > 0 and self.internal_append_timeout_ms > 0
        assert self.quota_windows > 0 and self.quota_window_ms > 0
        assert self.alter_log_dirs_windows > 0 and self.alter_log_dirs_window_ms > 0
