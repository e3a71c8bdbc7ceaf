"""message.timestamp.type, and how far a record's timestamp may be from the broker's clock."""

from struct import pack_into

import pytest
from tests.rows import each
from tests.unit.log.logs import NOW, append, content, open_log, produced, small

from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.log import timestamps
from strandline.log.config import LONG_MAX, LogConfig
from strandline.log.log import Log
from strandline.log.refusals import Refused
from strandline.log.timestamps import Found
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import (
    CRC_AT,
    HEADER_SIZE,
    MAX_TIMESTAMP_AT,
    NO_TIMESTAMP,
    append_record,
    batches,
    build,
    crc_of,
    read_header,
    repacked,
    why_invalid,
)
from strandline.wire.compress import Codec
from strandline.wire.record import all_records

BOUNDED = LogConfig(message_timestamp_before_max_ms=100, message_timestamp_after_max_ms=50)


def at(*timestamps: int, codec: Codec = Codec.NONE) -> bytes:
    return build([(timestamp, b"k", b"v", ()) for timestamp in timestamps], codec=codec)


def refusal_of(log: Log, batch: bytes | bytearray, now: int = NOW) -> Refused:
    done = log.append_as_leader(bytearray(batch), 0, Instant(now))
    assert isinstance(done, Refused), done
    assert log.log_end_offset == 0
    return done


@each("codec", [Codec.NONE, Codec.ZSTD])
@each(
    "timestamps",
    [
        (NOW - 100,),
        (NOW + 50,),
        (NOW - 100, NOW + 50, NOW - 100),
        (NO_TIMESTAMP,),
        (NOW, NO_TIMESTAMP),
        (NO_TIMESTAMP, NOW),
    ],
)
def test_records_within_the_bounds_and_those_without_a_time_are_taken(
    codec: Codec, timestamps: tuple[int, ...]
) -> None:
    log = open_log(SimDisk(), BOUNDED)
    append(log, at(*timestamps, codec=codec))
    assert [record.timestamp for record in all_records(content(log))] == list(timestamps)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize(
    ("timestamps", "blamed"),
    [
        ((NOW - 101,), (0,)),
        ((NOW + 51,), (0,)),
        ((NOW, NOW - 101, NOW, NOW - 102), (1, 3)),
        ((NO_TIMESTAMP, NOW - 101), (1,)),
        ((NOW, NOW + 1, NOW + 51), (2,)),
    ],
    ids=["too old", "too far ahead", "too old behind one that is not", "after one without a time", "the last"],
)
def test_one_record_outside_of_the_bounds_refuses_the_batch_and_is_named(
    codec: Codec, timestamps: tuple[int, ...], blamed: tuple[int, ...]
) -> None:
    done = refusal_of(open_log(SimDisk(), BOUNDED), at(*timestamps, codec=codec))
    assert (done.error, done.records) == (ErrorCode.INVALID_TIMESTAMP, blamed)
    assert done.message == (
        f"Timestamp {timestamps[blamed[0]]} of message with offset {blamed[0]} is out of range. "
        f"The timestamp should be within [{NOW - 100}, {NOW + 50}]"
    )


def test_a_header_that_lies_ahead_is_believed() -> None:
    """Kafka counts the largest timestamp anew. Here it is what indexes and retention would go by."""
    batch = bytearray(at(NOW))
    batch[35:43] = (NOW + 51).to_bytes(8, "big")
    sealed = repacked(read_header(batch), batch, Codec.NONE, batch[HEADER_SIZE:])
    done = refusal_of(open_log(SimDisk(), BOUNDED), sealed)
    assert (done.error, done.records) == (ErrorCode.INVALID_TIMESTAMP, ())


def unreadable(timestamp: int, count: int = 2) -> bytearray:
    batch = at(*[timestamp] * count)
    return repacked(read_header(batch), batch, Codec.ZSTD, b"no records")


def test_with_kafkas_defaults_no_record_is_read() -> None:
    assert (LogConfig().message_timestamp_before_max_ms, LogConfig().message_timestamp_after_max_ms) == (
        LONG_MAX,
        3_600_000,
    )
    log = open_log(SimDisk())
    append(log, bytes(unreadable(0)))
    assert refusal_of(open_log(SimDisk()), at(NOW + 3_600_001)).error is ErrorCode.INVALID_TIMESTAMP


def test_records_that_are_invalid_are_refused_where_they_must_be_read() -> None:
    assert refusal_of(open_log(SimDisk(), BOUNDED), unreadable(NOW)).error is ErrorCode.INVALID_RECORD
    append(open_log(SimDisk(), BOUNDED), bytes(unreadable(NOW, count=1)))  # its header says all


def test_the_brokers_time_has_no_bounds() -> None:
    config = small(
        message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=0, message_timestamp_after_max_ms=0
    )
    log = open_log(SimDisk(), config)
    append(log, at(3, LONG_MAX, NO_TIMESTAMP))
    assert {record.timestamp for record in all_records(content(log))} == {NOW}


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_stamped_batch_differs_in_attributes_time_and_crc_alone(codec: Codec) -> None:
    log = open_log(SimDisk(), LogConfig(message_timestamp_type="LogAppendTime"))
    sent = at(3, 4, codec=codec)
    append(log, sent, now=NOW + 5)
    stored = content(log)
    assert stored[HEADER_SIZE:] == sent[HEADER_SIZE:]
    (header,) = batches(stored)
    assert (header.base_timestamp, header.max_timestamp, header.codec) == (3, NOW + 5, codec)
    assert why_invalid(header, stored) is None


def test_a_duplicate_gets_the_time_of_the_first_append_also_after_a_restart() -> None:
    config = LogConfig(message_timestamp_type="LogAppendTime")
    log = open_log(SimDisk(), config)
    batch = produced(producer=(7, 0, 0))
    assert append(log, batch, now=NOW + 5).log_append_time == NOW + 5
    assert append(log, batch, now=NOW + 9).log_append_time == NOW + 5
    again = open_log(log.disk, config, clean=False)  # type: ignore[arg-type]
    assert append(again, batch, now=NOW + 9).log_append_time == NOW + 5


STAMPED = build([(3, b"k", b"v", ())], log_append_time=NOW - 7)


def test_a_producer_may_not_stamp_for_the_broker() -> None:
    done = refusal_of(open_log(SimDisk(), LogConfig(message_timestamp_type="LogAppendTime")), STAMPED)
    assert done.error is ErrorCode.INVALID_TIMESTAMP
    assert "Producer should not set timestamp type to LogAppendTime" in done.message


def test_a_topic_of_producers_times_has_no_batch_that_claims_to_be_stamped() -> None:
    log = open_log(SimDisk())
    append(log, STAMPED)
    (header,) = batches(content(log))
    assert not header.is_log_append_time
    assert why_invalid(header, content(log)) is None
    assert [record.timestamp for record in all_records(content(log))] == [3]


def test_a_timestamp_that_no_answer_can_name_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record has the difference to its batch's first timestamp, and both together may have more than 64 bits. Such a
    batch counts as one record, as does one that unpacks to more than may be looked at."""
    last = (1 << 63) - 1
    record = bytearray()
    append_record(record, 0, 0, (last, None, b"v", ()))
    batch = bytearray(build([(1 << 62, None, b"v", ())])[:HEADER_SIZE] + record)
    pack_into(">i", batch, 8, len(batch) - 12)
    pack_into(">q", batch, MAX_TIMESTAMP_AT, 7)
    pack_into(">I", batch, CRC_AT, crc_of(read_header(batch), batch))
    log = open_log(SimDisk())
    append(log, bytes(batch))
    assert log.offset_for_timestamp(5) == Found(7, 0, 0)
    assert log.offset_of_max_timestamp() == Found(7, 0, 0)
    append(log, at(8, 9, codec=Codec.GZIP))
    assert log.offset_for_timestamp(8) == Found(8, 1, 0)
    monkeypatch.setattr(timestamps, "PRODUCED_SIZE_MAX", 3)
    assert log.offset_for_timestamp(8) == Found(9, 1, 0)
