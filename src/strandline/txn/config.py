"""What the transaction coordinator is configured with."""

from strandline.base.value import Value


class TxnConfig(Value, frozen=True):
    """Under Kafka's names, without `transaction.` and with Kafka's defaults; spans in ms."""

    max_timeout_ms: int = 900_000
    abort_interval_ms: int = 10_000  # transaction.abort.timed.out.transaction.cleanup.interval.ms
    id_expiration_ms: int = 604_800_000  # transactional.id.expiration.ms
    remove_interval_ms: int = 3_600_000  # transaction.remove.expired.transaction.cleanup.interval.ms
    two_phase_commit_enable: bool = False

    def __post_init__(self) -> None:
        assert self.max_timeout_ms > 0 and self.id_expiration_ms > 0
        assert self.abort_interval_ms > 0 and self.remove_interval_ms > 0, "or a node would do nothing else"
