"""What a log refuses from a producer, and why. A refusal is a value; nothing has changed when there is one."""

from strandline.base.errors import ErrorCode, message_of
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.log.config import LogConfig
from strandline.wire.batch import BatchHeader, read_produced
from strandline.wire.record import records_without_key

LOG_APPEND_TIME = "LogAppendTime"


class Refused(Value, frozen=True):
    """`records`: which of the batch are to blame, counted from 0; empty if it is not about single ones."""

    error: ErrorCode
    message: str
    records: tuple[int, ...] = ()


def refused(error: ErrorCode, message: str = "") -> Refused:
    return Refused(error, message or message_of(error))


def accept_produced(buffer: memoryview, config: LogConfig, where: str, now: Instant) -> BatchHeader | Refused:
    """The header of the one batch that a producer sent for the partition `where`, if its log may have it."""
    read = read_produced(buffer, config.max_message_bytes)
    if isinstance(read, BatchHeader):
        return why_not_timely(read, config, now) or why_not_compactable(read, buffer, config, where) or read
    if read is ErrorCode.MESSAGE_TOO_LARGE:
        return Refused(
            read,
            f"The record batch size in the append to {where} is {len(buffer)} bytes "
            f"which exceeds the maximum configured value of {config.max_message_bytes}.",
        )
    return refused(read)


def why_not_timely(header: BatchHeader, config: LogConfig, now: Instant) -> Refused | None:
    if config.message_timestamp_type == LOG_APPEND_TIME:
        return None
    low, high = now - config.message_timestamp_before_max_ms, now + config.message_timestamp_after_max_ms
    if header.max_timestamp <= high and not 0 <= header.base_timestamp < low:
        return None
    return Refused(
        ErrorCode.INVALID_TIMESTAMP,
        f"Timestamp {header.max_timestamp} of message with offset {header.base_offset} is out of range. "
        f"The timestamp should be within [{low}, {high}]",
    )


def why_not_compactable(header: BatchHeader, buffer: memoryview, config: LogConfig, where: str) -> Refused | None:
    """A compacted log keeps the last record of each key, so every record needs one."""
    if "compact" not in config.cleanup_policy:
        return None
    without_key = records_without_key(header, buffer)
    if without_key is None:
        return refused(ErrorCode.CORRUPT_MESSAGE)
    if not without_key:
        return None
    why = f"Compacted topic cannot accept message without key in topic partition {where}."
    return Refused(ErrorCode.INVALID_RECORD, why, without_key)
