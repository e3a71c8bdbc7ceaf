"""Batches against the builders and readers of kafka-python and aiokafka."""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.wire.batch import batches, build, read_header, read_produced
from strandline.wire.compress import Codec
from strandline.wire.record import Record, records

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from aiokafka.record import default_records as aiokafka
    from kafka.record import default_records as kafka_python

drafts = st.lists(
    st.tuples(
        st.integers(0, 1 << 45),
        st.none() | st.binary(max_size=300),
        st.none() | st.binary(max_size=300),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=10)), max_size=3),
    ),
    min_size=1,
    max_size=10,
)
Drafts = list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]
quick = settings(max_examples=30, deadline=None)


def expected(wanted: Drafts, base: int = 0) -> list[Record]:
    return [Record(base + i, t, k, v, tuple(h)) for i, (t, k, v, h) in enumerate(wanted)]


def seen_by(batch: object) -> list[Record]:
    return [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]  # type: ignore[attr-defined]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@quick
@given(wanted=drafts)
def test_kafka_python_reads_what_we_build(codec: Codec, wanted: Drafts) -> None:
    ours = build(wanted, base_offset=50, leader_epoch=3, codec=codec, producer_id=9, producer_epoch=2, base_sequence=4)
    theirs = kafka_python.DefaultRecordBatch(ours)
    assert theirs.validate_crc()
    assert (theirs.base_offset, theirs.leader_epoch, theirs.next_offset) == (50, 3, 50 + len(wanted))
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (9, 2, 4)
    assert theirs.max_timestamp == max(draft[0] for draft in wanted)
    assert seen_by(theirs) == expected(wanted, 50)


@quick
@given(wanted=drafts, transactional=st.booleans())
def test_we_build_the_same_bytes_as_kafka_python(wanted: Drafts, transactional: bool) -> None:
    theirs = kafka_python.DefaultRecordBatchBuilder(2, 0, transactional, 9, 2, 4, 1 << 20)
    for offset, (timestamp, key, value, headers) in enumerate(wanted):
        theirs.append(offset, timestamp, key, value, headers)
    ours = build(wanted, transactional=transactional, producer_id=9, producer_epoch=2, base_sequence=4, leader_epoch=0)
    batch = bytes(theirs.build())
    assert batch[:12] == ours[:12]
    assert batch[16:] == ours[16:], "all but the leader epoch, which a producer leaves open"


@pytest.mark.parametrize("codec", Codec)
@quick
@given(wanted=drafts)
def test_aiokafka_reads_what_we_build(codec: Codec, wanted: Drafts) -> None:
    theirs = aiokafka.DefaultRecordBatch(build(wanted, base_offset=50, codec=codec))
    assert theirs.validate_crc()
    assert seen_by(theirs) == expected(wanted, 50)


@pytest.mark.parametrize("codec", Codec)
@quick
@given(wanted=drafts)
def test_we_read_what_aiokafka_builds(codec: Codec, wanted: Drafts) -> None:
    theirs = aiokafka.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=int(codec),
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for offset, (timestamp, key, value, headers) in enumerate(wanted):
        theirs.append(offset, timestamp, key, value, headers)
    batch = bytes(theirs.build())
    (header,) = batches(batch)
    assert read_produced(batch, 1 << 20) == header
    assert list(records(header, batch)) == expected(wanted)


def test_kafka_python_sees_the_brokers_time() -> None:
    batch = build([(1, b"k", b"v", [])], log_append_time=99)
    (record,) = kafka_python.DefaultRecordBatch(batch)
    assert (record.timestamp, record.timestamp_type) == (99, 1)
    assert read_header(batch).is_log_append_time
