"""The codec compiler on messages of our own: every kind of field, every version rule, and bytes that lie."""

import random
from typing import Annotated

import pytest
from tests.rows import each

from strandline.base.ids import ZERO_UUID, Uuid
from strandline.base.ports import Buffer
from strandline.wire.codec import decode_all, decoder_of, encode_bytes, encoder_of
from strandline.wire.primitive import Malformed, read_unsigned, unsigned
from strandline.wire.schema import (
    Bool,
    Bytes,
    Float64,
    Group,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Nullable,
    NullableString,
    Primitive,
    Records,
    String,
    Tag,
    UInt16,
    UuidField,
    V,
    message,
)

ID = Uuid(bytes(range(16)))


class Inner(Group):
    number: Int32 = 0
    name: Annotated[String, V("1+")] = ""
    extra: Annotated[Int64, V("2+"), Tag(0)] = -1


class Empty(Group):
    only_tagged: Annotated[String, V("2+"), Tag(3)] = ""


@message(key=900, kind="request", versions="0-3", flexible="2+")
class Everything(Message):
    flag: Bool = False
    tiny: Int8 = 0
    short: Int16 = 0
    wide: UInt16 = 0
    rate: Float64 = 0.0
    topic_id: UuidField = ZERO_UUID
    name: String = ""
    rack: NullableString = None
    late_null: Annotated[NullableString, Nullable("1+")] = ""
    payload: Bytes = b""
    maybe: Annotated[Buffer | None, Primitive("bytes"), Nullable()] = None
    numbers: tuple[Int32, ...] = ()
    flags: tuple[Bool, ...] = ()
    ids: tuple[UuidField, ...] = ()
    names: Annotated[tuple[String, ...] | None, Nullable("1+")] = ()
    inner: Inner = Inner()
    cursor: Annotated[Inner | None, Nullable()] = None
    inners: tuple[Inner, ...] = ()
    records: Records = None
    gone: Annotated[Int32, V("0-1")] = 7
    empties: Annotated[tuple[Empty, ...], V("2+")] = ()
    cluster_id: Annotated[NullableString, V("2+"), Tag(5)] = None
    leader: Annotated[Inner, V("3+"), Tag(1)] = Inner(number=-1)
    tagged_numbers: Annotated[tuple[Int16, ...], V("2+"), Tag(200)] = ()


FULL = Everything(
    flag=True,
    tiny=-3,
    short=-300,
    wide=65535,
    rate=-0.1,
    topic_id=ID,
    name="ü" * 100,
    rack="r",
    late_null="x",
    payload=b"p" * 130,
    maybe=b"",
    numbers=(1, -2, 2**31 - 1),
    flags=(True, False),
    ids=(ID, ZERO_UUID),
    names=("a", ""),
    inner=Inner(1, "one", 5),
    cursor=Inner(2, "two"),
    inners=tuple(Inner(n, str(n), -1 if n % 2 else n) for n in range(140)),
    records=b"records",
    gone=8,
    empties=(Empty("x"), Empty()),
    cluster_id="cluster",
    leader=Inner(9, "nine"),
    tagged_numbers=(1, 2, 3),
)


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("value", [FULL, Everything()], ids=["full", "defaults"])
def test_what_was_written_is_read_back(value: Everything, version: int) -> None:
    data = encode_bytes(value, version)
    again = decode_all(Everything, version, data)
    assert encode_bytes(again, version) == data
    assert again.inners == (
        value.inners
        if version >= 2
        else tuple(Inner(i.number, i.name if version == 1 else "", -1) for i in value.inners)
    )
    assert again.gone == (value.gone if version < 2 else 7), "a field that the version lacks has its default"
    assert again.cluster_id == (value.cluster_id if version >= 2 else None)
    assert again.leader == (value.leader if version >= 3 else Inner(number=-1))
    for name in ("flag", "tiny", "short", "wide", "rate", "topic_id", "name", "rack", "numbers", "ids"):
        assert getattr(again, name) == getattr(value, name)


def test_records_are_spliced_in_and_sliced_out_without_a_copy() -> None:
    first, second = bytearray(b"abc"), memoryview(b"defg")
    chunks = encoder_of(Everything, 3)(Everything(records=(first, second)), bytearray())
    assert chunks[1] is first
    assert chunks[2] is second
    frame = b"".join(chunks)
    records = decode_all(Everything, 3, frame).records
    assert isinstance(records, memoryview)
    assert records.obj is frame
    assert records == b"abcdefg"


def test_tagged_fields_at_their_default_are_not_written_and_others_are_in_order() -> None:
    assert encode_bytes(Everything(), 3).endswith(b"\x00")
    data = encode_bytes(Everything(cluster_id="c", leader=Inner(5), tagged_numbers=(1,)), 3)
    tail = b"\x03" + b"\x01\x06\x00\x00\x00\x05\x01\x00" + b"\x05\x02\x02c" + b"\xc8\x01\x03\x02\x00\x01"
    assert data.endswith(tail)


def test_unknown_tagged_fields_are_skipped() -> None:
    data = encode_bytes(Everything(cluster_id="c"), 2)
    assert data.endswith(b"\x01\x05\x02\x02c")
    data = data[:-5] + b"\x03" + b"\x05\x02\x02c" + b"\x07\x03xyz" + unsigned(9999) + unsigned(200) + bytes(200)
    assert decode_all(Everything, 2, data) == decode_all(Everything, 2, encode_bytes(Everything(cluster_id="c"), 2))


@pytest.mark.parametrize(
    "tail",
    [b"\x01\x05\x03\x02c", b"\x01\x05\x01\x02c", b"\x01\x05\x7f\x02c", b"\xff\xff\xff\xff\x0f", b"\x01\x09\x05ab"],
    ids=["size too large", "size too small", "beyond the end", "a huge count", "unknown beyond the end"],
)
def test_a_tagged_field_that_lies_about_its_size_is_malformed(tail: bytes) -> None:
    data = encode_bytes(Everything(), 2)
    with pytest.raises(Malformed):
        decode_all(Everything, 2, data[:-1] + tail)


@pytest.mark.parametrize("version", range(4))
def test_a_message_cut_anywhere_is_malformed(version: int) -> None:
    data = encode_bytes(FULL, version)
    for size in range(len(data)):
        with pytest.raises(Malformed):
            decode_all(Everything, version, data[:size])
    with pytest.raises(Malformed):
        decode_all(Everything, version, data + b"\x00")


@pytest.mark.parametrize("version", range(4))
def test_garbage_is_malformed_and_nothing_else(version: int) -> None:
    rng = random.Random(version)
    data = encode_bytes(FULL, version)
    decode = decoder_of(Everything, version)
    refused = 0
    for _ in range(3000):
        broken = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(len(broken))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        try:
            decode(memoryview(broken), 0)
        except Malformed:
            refused += 1
    for _ in range(3000):
        try:
            decode(memoryview(rng.randbytes(rng.randrange(200))), 0)
        except Malformed:
            refused += 1
    assert refused > 2000


@message(versions="0-1", flexible="1+")
class Names(Message):
    names: tuple[String, ...] = ()


@message(versions="0-1", flexible="1+")
class Numbers(Message):
    numbers: tuple[Int32, ...] = ()


@each("cls", [Names, Numbers])
@each(
    ("version", "data"),
    [
        (0, b"\xff\xff\xff\xff"),
        (0, b"\xff\xff\xff\xfe"),
        (0, b"\x7f\xff\xff\xff" + bytes(64)),
        (1, b"\x00\x00"),
        (1, b"\xff\xff\xff\xff\x0f" + bytes(64)),
        (1, b"\xff\xff\xff\xff\xff\x01" + bytes(64)),
    ],
    ids=["null", "negative", "huge", "compact null", "compact huge", "varint too long"],
)
def test_a_count_that_cannot_be_true_is_malformed(cls: type[Message], version: int, data: bytes) -> None:
    with pytest.raises(Malformed):
        decode_all(cls, version, data)


def test_a_string_that_is_not_utf_8_is_malformed() -> None:
    with pytest.raises(Malformed):
        decode_all(Names, 0, b"\x00\x00\x00\x01\x00\x02\xff\xfe")


def test_null_is_refused_in_versions_that_do_not_allow_it() -> None:
    assert decode_all(Everything, 1, encode_bytes(Everything(names=None), 1)).names is None
    with pytest.raises(TypeError):
        encode_bytes(Everything(names=None), 0)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 16383, 16384, 2**21, 2**28, 2**32 - 1])
def test_varints(value: int) -> None:
    data = unsigned(value)
    assert read_unsigned(data, 0) == (value, len(data))
    with pytest.raises(Malformed):
        read_unsigned(data[:-1], 0)
