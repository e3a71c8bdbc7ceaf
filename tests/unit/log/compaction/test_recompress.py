"""compression.type: what the leader stores of a batch whose codec is not the topic's."""

import warnings

import pytest
from tests.rows import each
from tests.unit.log.logs import NOW, append, content, open_log, small

from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.log.config import LogConfig
from strandline.log.log import Appended, Log
from strandline.log.recompress import CODEC_OF
from strandline.log.refusals import Refused
from strandline.metadata.configs.topic_configs import COMPRESSION_TYPES
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import HEADER_SIZE, BatchHeader, batches, build, read_header, repacked, why_invalid
from strandline.wire.compress import Codec, compress
from strandline.wire.record import PRODUCED_SIZE_MAX, Record, all_records

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from aiokafka.record.memory_records import MemoryRecords

TYPE_OF = {codec: name for name, codec in CODEC_OF.items() if codec is not None}
DRAFTS = [(NOW + i, b"k%d" % i, b"some value " * 20, (("h", b"x"), ("n", None))) for i in range(40)]


def sent_in(codec: Codec, **fields: object) -> bytes:
    return build(DRAFTS, codec=codec, **fields)  # type: ignore[arg-type]


def only_header(log: Log) -> BatchHeader:
    (header,) = batches(content(log))
    return header


def refusal_of(log: Log, batch: bytes | bytearray) -> Refused:
    before, end = log.disk.contents(), log.log_end_offset  # type: ignore[attr-defined]
    done = log.append_as_leader(bytearray(batch), 0, NOW)
    assert isinstance(done, Refused), done
    assert (log.disk.contents(), log.log_end_offset) == (before, end), "nothing has changed"  # type: ignore[attr-defined]
    log.check()
    return done


def test_every_compression_type_of_a_topic_is_known_here() -> None:
    assert sorted(CODEC_OF) == sorted(COMPRESSION_TYPES)


@each("source", Codec)
@each("target", Codec)
def test_a_batch_is_stored_in_the_topics_codec_and_says_what_it_said(source: Codec, target: Codec) -> None:
    log = open_log(SimDisk(), LogConfig(compression_type=TYPE_OF[target]))
    batch = sent_in(source, producer_id=7, producer_epoch=3, base_sequence=11, transactional=True)
    append(log, build([(NOW, b"k", b"v", ())]), 4)
    done = log.append_as_leader(bytearray(batch), 5, Instant(NOW), internal=True, may_begin=True)
    assert isinstance(done, Appended), done
    assert (done.base_offset, done.last_offset) == (1, 40)
    was, stored = read_header(batch), list(batches(content(log)))[1]
    assert stored.codec == target
    assert stored.size == done.size_bytes == len(content(log)) - read_header(content(log)).size
    kept = ("last_offset_delta", "base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence")
    assert [getattr(stored, name) for name in kept] == [getattr(was, name) for name in kept]
    assert (stored.base_offset, stored.partition_leader_epoch, stored.record_count) == (1, 5, 40)
    assert (stored.is_transactional, stored.is_control, stored.is_log_append_time) == (True, False, False)
    expected = [Record(1 + i, *draft) for i, draft in enumerate(DRAFTS)]
    assert list(all_records(content(log), read_header(content(log)).end)) == expected
    again = open_log(log.disk, clean=False)  # type: ignore[arg-type]
    assert again.log_end_offset == 41, "recovery believes the checksum"


@pytest.mark.parametrize("target", Codec)
def test_another_client_reads_what_was_recompressed(target: Codec) -> None:
    log = open_log(SimDisk(), LogConfig(compression_type=TYPE_OF[target]))
    append(log, sent_in(Codec.NONE if target is not Codec.NONE else Codec.ZSTD))
    theirs = MemoryRecords(content(log)).next_batch()
    assert theirs is not None
    assert theirs.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value) for r in theirs] == [
        (i, timestamp, key, value) for i, (timestamp, key, value, _) in enumerate(DRAFTS)
    ]


@each("codec", Codec)
@each("compression_type", COMPRESSION_TYPES)
def test_a_batch_that_may_stay_as_it_is_is_not_copied(codec: Codec, compression_type: str) -> None:
    """`producer`, or the topic's own codec: the very memory that was received joins the log's tail."""
    log = open_log(SimDisk(), LogConfig(compression_type=compression_type))
    sent = bytearray(sent_in(codec))
    append_to(log, sent)
    stays = compression_type in ("producer", TYPE_OF[codec])
    assert (log.tail.chunks[-1].obj is sent) == stays


def append_to(log: Log, sent: bytearray) -> None:
    assert isinstance(log.append_as_leader(sent, 0, NOW), Appended)


def test_another_level_of_the_same_codec_is_left_alone() -> None:
    log = open_log(SimDisk(), LogConfig(compression_type="gzip", compression_gzip_level=9))
    plain = sent_in(Codec.NONE)
    weak = compress(Codec.GZIP, plain[HEADER_SIZE:], 1)
    sent = repacked(read_header(plain), plain, Codec.GZIP, weak)
    append_to(log, sent)
    assert content(log)[HEADER_SIZE:] == weak != compress(Codec.GZIP, plain[HEADER_SIZE:], 9)


@pytest.mark.parametrize(
    ("codec", "key", "levels"),
    [
        (Codec.GZIP, "compression_gzip_level", (-1, 1, 9)),
        (Codec.LZ4, "compression_lz4_level", (1, 9, 17)),
        (Codec.ZSTD, "compression_zstd_level", (-131072, 3, 19)),
    ],
)
def test_the_topics_level_is_used(codec: Codec, key: str, levels: tuple[int, ...]) -> None:
    plain = sent_in(Codec.NONE)
    for level in levels:
        log = open_log(SimDisk(), LogConfig(compression_type=TYPE_OF[codec], **{key: level}))  # type: ignore[arg-type]
        append(log, plain)
        assert content(log)[HEADER_SIZE:] == compress(codec, plain[HEADER_SIZE:], level)


def test_a_duplicate_is_recognised_though_it_was_stored_in_another_form() -> None:
    log = open_log(SimDisk(), LogConfig(compression_type="zstd"))
    batch = sent_in(Codec.GZIP, producer_id=7, producer_epoch=0, base_sequence=0)
    append(log, batch)
    again = append(log, batch)
    assert (again.duplicate, again.base_offset, again.last_offset, again.size_bytes) == (True, 0, 39, 0)
    reopened = open_log(log.disk, LogConfig(compression_type="zstd"), clean=False)  # type: ignore[arg-type]
    assert append(reopened, batch).duplicate


def test_a_control_batch_is_never_touched() -> None:
    log = open_log(SimDisk(), LogConfig(compression_type="gzip"))
    marker = build([(NOW, b"\0\0\0\1", b"\0\0\0\0\0\0", ())], control=True, producer_id=7, producer_epoch=0)
    sent = bytearray(marker)
    assert isinstance(log.append_as_leader(sent, 0, NOW, internal=True), Appended)
    assert log.tail.chunks[-1].obj is sent
    assert only_header(log).codec == Codec.NONE


def test_the_brokers_own_records_take_the_topics_codec_and_keep_to_no_size() -> None:
    log = open_log(SimDisk(), LogConfig(compression_type="lz4", max_message_bytes=10))
    assert isinstance(log.append_as_leader(bytearray(sent_in(Codec.NONE)), 0, NOW, internal=True), Appended)
    assert only_header(log).codec == Codec.LZ4


def test_the_brokers_time_is_written_into_the_batch_that_is_stored() -> None:
    config = LogConfig(compression_type="snappy", message_timestamp_type="LogAppendTime")
    log = open_log(SimDisk(), config)
    assert append(log, sent_in(Codec.LZ4), now=NOW + 9).log_append_time == NOW + 9
    header = only_header(log)
    assert (header.codec, header.is_log_append_time, header.max_timestamp) == (Codec.SNAPPY, True, NOW + 9)
    assert why_invalid(header, content(log)) is None


def test_a_changed_type_concerns_the_batches_that_come_after_it() -> None:
    log = open_log(SimDisk(), LogConfig(compression_type="gzip"))
    append(log, sent_in(Codec.NONE))
    log.reconfigure(LogConfig(compression_type="producer"))
    append(log, sent_in(Codec.NONE))
    log.reconfigure(LogConfig(compression_type="zstd"))
    append(log, sent_in(Codec.NONE))
    assert [header.codec for header in batches(content(log))] == [Codec.GZIP, Codec.NONE, Codec.ZSTD]


def test_a_follower_has_the_leaders_bytes_whatever_it_believes_of_the_topic() -> None:
    leader = open_log(SimDisk(), LogConfig(compression_type="gzip"))
    follower = open_log(SimDisk(), LogConfig(compression_type="zstd", compression_zstd_level=19))
    append(leader, sent_in(Codec.LZ4))
    assert follower.append_as_follower(content(leader), 0, NOW) == 40
    assert content(follower) == content(leader)


# --- refusals


def test_a_batch_that_grows_beyond_the_limit_is_refused_as_it_would_be_stored() -> None:
    batch = sent_in(Codec.ZSTD)
    log = open_log(SimDisk(), small(max_message_bytes=len(batch), compression_type="uncompressed"))
    done = refusal_of(log, batch)
    assert done.error is ErrorCode.MESSAGE_TOO_LARGE
    assert done.message == (
        f"Message batch size is {len(sent_in(Codec.NONE))} bytes in append to partition t-0 "
        f"which exceeds the maximum configured size of {len(batch)}."
    )


def test_the_limit_is_exact_for_what_is_stored() -> None:
    plain, packed = sent_in(Codec.NONE), sent_in(Codec.ZSTD)
    append(open_log(SimDisk(), small(max_message_bytes=len(plain), compression_type="uncompressed")), packed)
    log = open_log(SimDisk(), small(max_message_bytes=len(plain) - 1, compression_type="uncompressed"))
    assert refusal_of(log, packed).error is ErrorCode.MESSAGE_TOO_LARGE


def test_a_batch_that_would_shrink_below_the_limit_is_refused_as_it_was_sent() -> None:
    plain = sent_in(Codec.NONE)
    log = open_log(SimDisk(), small(max_message_bytes=len(plain) - 1, compression_type="zstd"))
    done = refusal_of(log, plain)
    assert done.error is ErrorCode.MESSAGE_TOO_LARGE
    assert done.message.startswith("The record batch size in the append to t-0 is")


def test_a_bomb_is_refused_and_not_unpacked() -> None:
    bomb = build([(NOW, None, bytes(PRODUCED_SIZE_MAX), ())], codec=Codec.ZSTD)
    log = open_log(SimDisk(), LogConfig(compression_type="gzip"))
    assert refusal_of(log, bomb).error is ErrorCode.MESSAGE_TOO_LARGE
    append(open_log(SimDisk()), bomb)  # where nothing is unpacked, nothing is refused


PLAIN = sent_in(Codec.NONE)
RECORDS = PLAIN[HEADER_SIZE:]


@pytest.mark.parametrize(
    ("codec", "records"),
    [
        (Codec.ZSTD, b"no frame"),
        (Codec.GZIP, compress(Codec.GZIP, RECORDS)[:-9]),
        (Codec.LZ4, compress(Codec.LZ4, RECORDS + b"\0")),
        (Codec.SNAPPY, compress(Codec.SNAPPY, RECORDS[:-1])),
        (Codec.NONE, RECORDS[: len(RECORDS) // 2]),
        (Codec.NONE, RECORDS + RECORDS),
    ],
    ids=["not in that codec", "cut off", "a byte too many", "a byte too few", "half of them", "twice"],
)
def test_records_that_are_invalid_are_refused_for_good(codec: Codec, records: bytes) -> None:
    """A right CRC over wrong records: CORRUPT_MESSAGE would make the producer send the same again and again."""
    batch = repacked(read_header(PLAIN), PLAIN, codec, records)
    done = refusal_of(open_log(SimDisk(), LogConfig(compression_type=other_than(codec))), batch)
    assert done.error is ErrorCode.INVALID_RECORD
    assert "t-0" in done.message


def other_than(codec: Codec) -> str:
    return "uncompressed" if codec is not Codec.NONE else "gzip"


def test_a_refused_batch_leaves_its_sequence_free() -> None:
    log = open_log(SimDisk(), LogConfig(compression_type="gzip"))
    sent = sent_in(Codec.NONE, producer_id=7, producer_epoch=0, base_sequence=0)
    refusal_of(log, repacked(read_header(sent), sent, Codec.NONE, sent[HEADER_SIZE:-1]))
    assert not append(log, sent).duplicate


def test_a_batch_whose_crc_is_wrong_is_corrupt_before_anything_is_unpacked() -> None:
    log = open_log(SimDisk(), LogConfig(compression_type="gzip"))
    sent = bytearray(sent_in(Codec.ZSTD))
    sent[-1] ^= 1
    assert refusal_of(log, sent).error is ErrorCode.CORRUPT_MESSAGE


def test_what_may_not_be_changed_is_not() -> None:
    log = open_log(SimDisk(), LogConfig(compression_type="gzip"))
    sent = sent_in(Codec.NONE)
    assert isinstance(log.append_as_leader(memoryview(sent), 9, Instant(NOW)), Appended)
    assert sent == sent_in(Codec.NONE)
