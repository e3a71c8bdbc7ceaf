"""What a log refuses from a producer, and why. A refusal is a value; nothing has changed when there is one."""

from strandline.base.errors import ErrorCode, message_of
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.log.config import LogConfig
from strandline.wire.batch import NO_TIMESTAMP, RECORDS_MAX, BatchHeader, read_produced
from strandline.wire.record import records_without_key, timestamps

LOG_APPEND_TIME = "LogAppendTime"
RECORDS_NAMED_MAX = 1_000  # the records of a refused batch that an answer names


class Refused(Value, frozen=True):
    """`records`: which of the batch are to blame, counted from 0; empty if it is not about single ones."""

    error: ErrorCode
    message: str
    records: tuple[int, ...] = ()


def refused(error: ErrorCode, message: str = "") -> Refused:
    assert error is not ErrorCode.NONE, "a refusal has a reason"
    return Refused(error, message or message_of(error))


STAMPED = Refused(
    ErrorCode.INVALID_TIMESTAMP,
    "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime.",
)


OUTSIDE_TRANSACTION = Refused(
    # Nobody has verified that the coordinator knows of the transaction, and will end it (KIP-890).
    ErrorCode.INVALID_TXN_STATE,
    "Record was not part of an ongoing transaction",
)
INSIDE_TRANSACTION = Refused(
    ErrorCode.INVALID_TXN_STATE, "Expected transactional write from the producer, whose transaction is open here"
)
NOT_THE_FIRST = Refused(
    # The log does not know the producer, and would take any sequence. But the first batch is still to come (KIP-890).
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    "The first batch of a transaction has sequence 0",
)


def partition_in(directory: str) -> str:
    """The partition whose log lies there, for people."""
    return directory.rpartition("/")[2]


def accept_produced(buffer: memoryview, config: LogConfig, directory: str, now: Instant) -> BatchHeader | Refused:
    """The header of the one batch that a producer sent for the log in `directory`, if that may have it."""
    read = read_produced(buffer, config.max_message_bytes)
    if isinstance(read, BatchHeader):
        return why_not_timely(read, buffer, config, now) or why_not_compactable(read, buffer, config, directory) or read
    if read is ErrorCode.MESSAGE_TOO_LARGE and len(buffer) <= config.max_message_bytes:
        return Refused(
            read, f"The batch in the append to {partition_in(directory)} has more than {RECORDS_MAX} records."
        )
    if read is ErrorCode.MESSAGE_TOO_LARGE:
        return Refused(
            read,
            f"The record batch size in the append to {partition_in(directory)} is {len(buffer)} bytes "
            f"which exceeds the maximum configured value of {config.max_message_bytes}.",
        )
    return refused(read)


def why_not_timely(header: BatchHeader, buffer: memoryview, config: LogConfig, now: Instant) -> Refused | None:
    """message.timestamp.before.max.ms and after.max.ms, of records that keep their producer's time.

    Kafka looks at every record. Here the header answers where it can: its largest timestamp is believed (Kafka counts
    it anew), so none lies too far ahead. Which is the smallest it does not say, only the first; records are read only
    if the topic has a bound that the first and the largest keep, and if they are not the only ones.
    """
    if config.message_timestamp_type == LOG_APPEND_TIME:
        return STAMPED if header.is_log_append_time else None
    low, high = now - config.message_timestamp_before_max_ms, now + config.message_timestamp_after_max_ms
    first, largest = header.base_timestamp, header.max_timestamp
    if largest <= high and (low <= 0 or (header.record_count == 1 and low <= first)):
        return None
    stamps = timestamps(header, buffer)
    if stamps is None:
        return refused(ErrorCode.INVALID_RECORD)
    late = [at for at, stamp in enumerate(stamps) if stamp != NO_TIMESTAMP and not low <= stamp <= high]
    if not late and largest <= high:
        return None
    at = late[0] if late else 0
    return Refused(
        ErrorCode.INVALID_TIMESTAMP,
        f"Timestamp {stamps[at] if late else largest} of message with offset {at} is out of range. "
        f"The timestamp should be within [{low}, {high}]",
        tuple(late[:RECORDS_NAMED_MAX]),
    )


def why_not_compactable(header: BatchHeader, buffer: memoryview, config: LogConfig, directory: str) -> Refused | None:
    """A compacted log keeps the last record of each key, so every record needs one."""
    if not config.compacts:
        return None
    without_key = records_without_key(header, buffer)
    if without_key is None:
        return refused(ErrorCode.INVALID_RECORD)
    if not without_key:
        return None
    why = f"Compacted topic cannot accept message without key in topic partition {partition_in(directory)}."
    return Refused(ErrorCode.INVALID_RECORD, why, without_key[:RECORDS_NAMED_MAX])
