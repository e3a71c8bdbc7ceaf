"""Few bytes that claim to be much, or unpack to much: what is allocated, and what is refused before."""

import gzip
import tracemalloc
from collections.abc import Callable
from random import Random
from struct import error, pack_into
from typing import Any

import pytest

from strandline.base.errors import ErrorCode
from strandline.wire.api import APIS
from strandline.wire.batch import (
    CRC_AT,
    HEADER_SIZE,
    RECORDS_MAX,
    append_record,
    build,
    crc_of,
    read_header,
    read_produced,
)
from strandline.wire.codec import ITEMS_MAX, decode_all, decoder_of, encode_bytes
from strandline.wire.codec_plan import Shape, layout_of
from strandline.wire.compress import Codec, Corrupt, compress, decompress
from strandline.wire.frame import HEADER_TAGS_MAX, UNCOUNTED_MAX, decode_request, encode_request
from strandline.wire.messages.groups.describe_groups import DescribeGroupsRequest
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.messages.topics.create_topics import CreatableTopicResult, CreateTopicsResponse
from strandline.wire.messages.transactions.describe_producers import DescribeProducersRequest, TopicRequest
from strandline.wire.primitive import Malformed, unsigned
from strandline.wire.record import records_without_key, timestamps

SLACK = 64 * 1024  # bytes


def frame_of(message: Any, version: int) -> bytes:
    return b"".join(encode_request(message, version, 1, "c"))[4:]


def peak_of(work: Callable[[], Any]) -> int:
    """Bytes allocated at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_large_request_has_only_so_many_items() -> None:
    most = DescribeGroupsRequest(groups=("g",) * (ITEMS_MAX + 1))
    assert len(decode_request(memoryview(frame_of(DescribeGroupsRequest(groups=most.groups[1:]), 5))).message.groups)
    too_many = frame_of(most, 5)

    def refused() -> None:
        with pytest.raises(Malformed, match=f"more than {ITEMS_MAX} items"):
            decode_request(memoryview(too_many))

    assert len(too_many) > UNCOUNTED_MAX
    assert peak_of(refused) < SLACK


def test_items_are_counted_over_all_arrays_and_so_are_tagged_fields() -> None:
    inner = TopicRequest(name="t", partition_indexes=(0,) * 1_000)
    with pytest.raises(Malformed, match="items"):
        decode_request(memoryview(frame_of(DescribeProducersRequest(topics=(inner,) * (ITEMS_MAX // 1_000)), 0)))
    heartbeat = frame_of(HeartbeatRequest(group_id="g"), 4)
    assert heartbeat[-1] == 0, "no tagged field"
    tags = heartbeat[:-1] + unsigned(ITEMS_MAX + 1) + b"\x7f\x00" * (ITEMS_MAX + 1)
    with pytest.raises(Malformed, match="items"):
        decode_request(memoryview(tags))


def test_records_are_no_items() -> None:
    data = PartitionProduceData(index=0, records=bytes(4 * UNCOUNTED_MAX))
    request = ProduceRequest(topic_data=(TopicProduceData(name="t", partition_data=(data,)),))
    frame = memoryview(frame_of(request, 12))
    decode_request(frame)  # its decoder is compiled
    assert peak_of(lambda: decode_request(frame)) < SLACK, "they are not copied"


def test_a_header_has_only_so_many_tagged_fields() -> None:
    frame = frame_of(HeartbeatRequest(), 4)
    at = 8 + 2 + 1  # keys, correlation id, client id "c"
    for count, is_right in ((HEADER_TAGS_MAX, True), (HEADER_TAGS_MAX + 1, False)):
        tagged = memoryview(frame[:at] + unsigned(count) + b"\x09\x00" * count + frame[at + 1 :])
        if is_right:
            decode_request(tagged)
        else:
            with pytest.raises(Malformed, match="tagged fields in the header"):
                decode_request(tagged)


def test_a_count_that_lies_is_refused_before_anything_is_allocated() -> None:
    """In the first array of every request that begins with one, in its newest version."""
    tried = 0
    for api in APIS:
        version = api.request.versions[-1]
        layout = layout_of(api.request, version)
        if not layout.inline or layout.inline[0].type.shape is not Shape.ARRAY:
            continue
        decode = decoder_of(api.request, version)
        lie = unsigned(0x7FFFFFFF) if layout.flexible else b"\x7f\xff\xff\xff"

        def refused(decode: Any = decode, lie: bytes = lie) -> None:
            with pytest.raises(Malformed):
                decode(memoryview(lie + bytes(100)), 0)

        assert peak_of(refused) < SLACK, api.name
        tried += 1
    assert tried > 10


# --- batches


def batch_of(count: int, key: bytes | None = b"") -> bytearray:
    """`count` records of a few bytes, which take next to nothing when compressed."""
    record = bytearray()
    append_record(record, 0, 0, (0, key, None, ()))
    plain = bytearray()
    if count <= 100_000:
        for delta in range(count):
            append_record(plain, delta, 0, (0, key, None, ()))
    packed = compress(Codec.ZSTD, bytes(plain or record))
    batch = bytearray(build([(0, key, None, ())], codec=Codec.ZSTD)[:HEADER_SIZE] + packed)
    pack_into(">i", batch, 8, len(batch) - 12)
    pack_into(">i", batch, 23, count - 1)
    pack_into(">i", batch, 57, count)
    pack_into(">I", batch, CRC_AT, crc_of(read_header(batch), batch))
    return batch


def test_a_batch_has_only_so_many_records() -> None:
    most, more = batch_of(RECORDS_MAX), batch_of(RECORDS_MAX + 1)
    assert not isinstance(read_produced(memoryview(most), 1 << 20), ErrorCode)
    assert read_produced(memoryview(more), 1 << 20) is ErrorCode.MESSAGE_TOO_LARGE, "so that producers split it"


def test_records_are_looked_at_one_at_a_time() -> None:
    count = 20_000
    batch = batch_of(count)
    header = read_header(batch)
    plain = len(decompress(Codec.ZSTD, batch[HEADER_SIZE:]))
    assert len(batch) < plain // 2
    records_without_key(header, batch)
    # Twice what it unpacks to: the buffer to unpack into, and what is cut out of it.
    assert peak_of(lambda: records_without_key(header, batch)) < 10 * plain // 4 + SLACK
    assert peak_of(lambda: timestamps(header, batch)) < 10 * plain // 4 + 12 * count + SLACK


def test_members_of_a_gzip_file_may_end_anywhere() -> None:
    rng = Random(3)
    parts = [rng.randbytes(rng.choice((0, 1, 100, 20_000))) for _ in range(300)]
    packed = b"".join(gzip.compress(part) for part in parts)
    whole = b"".join(parts)
    assert decompress(Codec.GZIP, packed, len(whole)) == whole
    for cut in (1, 5, 20_000):
        with pytest.raises(Corrupt):
            decompress(Codec.GZIP, packed[:-cut])
    with pytest.raises(Corrupt, match="limit"):
        decompress(Codec.GZIP, packed, len(whole) - 1)


def test_what_a_codec_unpacks_is_bounded_whatever_the_input_is() -> None:
    limit = 1 << 20
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        bomb = compress(codec, bytes(32 * limit))

        def refused(codec: Codec = codec, bomb: bytes = bomb) -> None:
            with pytest.raises(Corrupt, match="limit"):
                decompress(codec, bomb, limit)

        assert peak_of(refused) < 3 * limit + 2 * len(bomb) + SLACK, codec


# --- texts


def test_an_error_message_is_cut_to_what_clients_read() -> None:
    """It may quote what a client sent, who may not stop the node that answers by that. Versions that are not flexible
    have no room for more, and Kafka's clients read no more of the others."""
    text = "a" + "é" * 20_000
    row = CreatableTopicResult(name="t", error_message=text)
    for version in (4, 7):
        read = decode_all(CreateTopicsResponse, version, encode_bytes(CreateTopicsResponse(topics=(row,)), version))
        assert read.topics[0].error_message == text[: 1 + 0x7FFE // 2]
    with pytest.raises(error):
        encode_bytes(CreateTopicsResponse(topics=(CreatableTopicResult(name=text),)), 4)
