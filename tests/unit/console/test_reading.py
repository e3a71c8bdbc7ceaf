"""Bytes of records as text, and pages of records within their bounds."""

import base64
import io
import json
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from strandline.client.errors import BadOption, CorruptRecords
from strandline.client.fetching import Fetched
from strandline.client.offsets import Found
from strandline.console.reading import browsing, texts
from strandline.console.reading.browsing import Budget, Wanted, browse, partitions_in
from strandline.console.reading.framing import without_framing
from strandline.console.reading.texts import Format, Shown, format_of, shown
from strandline.wire.batch import build
from strandline.wire.compress import Codec

# --- texts


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (None, "auto", Shown("null")),
        (b"", "auto", Shown("text", "", 0)),
        (b'{"b":1,"a":[]}', "auto", Shown("json", '{\n  "b": 1,\n  "a": []\n}', 14)),
        (b"plain \xc3\xa9", "auto", Shown("text", "plain \u00e9", 8)),
        (b"a\x00b", "auto", Shown("hex", f"00000000  {'61 00 62':<47}  a.b", 3)),
        (b"\xff\xfe", "auto", Shown("hex", f"00000000  {'ff fe':<47}  ..", 2)),
        (b"a\x00b", "text", Shown("text", "a\x00b", 3)),
        (b"\xff", "text", Shown("hex", f"00000000  {'ff':<47}  .", 1, problem="it is not UTF-8")),
        (b"{", "json", Shown("text", "{", 1, problem="it is not valid JSON")),
        (b"7", "text", Shown("text", "7", 1)),
        (b"7", "hex", Shown("hex", f"00000000  {'37':<47}  7", 1)),
        (b"[" * 3000, "auto", Shown("text", "[" * 3000, 3000)),
    ],
)
def test_bytes_are_shown_as_what_they_are_asked_for_or_why_not(
    content: bytes | None, name: str, expected: Shown
) -> None:
    assert shown(content, Format(name)) == expected


def test_what_is_large_is_cut_and_never_between_the_bytes_of_a_character(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "SHOWN_MAX", 5)
    assert shown(b"abcd\xc3\xa9f", Format("text")) == Shown("text", "abcd", 7, is_cut=True)
    assert shown(b'{"a": 1}', Format("json")).problem == "it is too large to be shown as JSON: 8 bytes"
    assert shown(b"abcdef", Format("hex")).text.endswith("abcde")
    assert shown(b"[1]", Format("json")) == Shown("json", "[\n  1", 3, is_cut=True)


def test_what_nests_deeply_is_not_written_out_where_nobody_sees_it() -> None:
    content = b"[" * 400 + b"1," * 10_000 + b"1" + b"]" * 400
    assert len(texts.as_json(json.loads(content))) < 2 * texts.SHOWN_MAX
    found = shown(content, Format())
    assert (found.form, found.is_cut, len(found.text)) == ("json", True, texts.SHOWN_MAX)


def test_what_is_large_is_not_decoded_by_a_schema() -> None:
    read: list[bytes] = []
    content = b"x" * (texts.DECODED_MAX + 1)
    found = shown(content, Format("avro", read.append))
    assert (found.form, read) == ("text", [])
    assert found.problem == f"it is too large to be decoded: {len(content)} bytes"


@pytest.mark.parametrize("kind", [{"type": "bytes"}, {"type": "fixed", "size": 20_000, "name": "f"}])
def test_a_decimal_that_would_take_seconds_is_not_decoded(kind: dict[str, Any]) -> None:
    decimal = kind | {"logicalType": "decimal", "precision": 9, "scale": 2}
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "d", "type": ["null", decimal]}]})
    content = b"\x02" + (packed("long", 20_000) if kind["type"] == "bytes" else b"") + b"\x7f" * 20_000
    assert "are too many for a schema with a decimal" in shown(content, format_of("avro", schema)).problem
    if kind["type"] == "bytes":
        assert json.loads(shown(b"\x02\x02\x7f", format_of("avro", schema)).text) == {"d": "1.27"}


def test_a_format_that_there_is_not_is_refused() -> None:
    with pytest.raises(BadOption, match="'xml' is not a format"):
        format_of("xml")


AVRO = {
    "type": "record",
    "name": "Ware",
    "fields": [{"name": "name", "type": "string"}, {"name": "raw", "type": ["null", "bytes"]}],
}


def packed(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def test_avro_is_decoded_by_its_schema_also_behind_the_header_of_a_registry() -> None:
    content = packed(AVRO, {"name": "tea", "raw": b"\x01\xff"})
    expected = Shown("avro", '{\n  "name": "tea",\n  "raw": "01ff"\n}', len(content))
    assert shown(content, format_of("avro", json.dumps(AVRO))) == expected
    framed = shown(b"\0\0\0\0\x07" + content, format_of("avro", json.dumps(AVRO), is_framed=True))
    assert (framed.form, framed.text) == ("avro", expected.text)
    unframed = shown(content, format_of("avro", json.dumps(AVRO), is_framed=True))
    assert unframed.problem.endswith("it does not begin with the header of a schema registry")


@pytest.mark.parametrize("content", [b"", b"\x06te", b"\x06tea\x00left", b"\x06tea\x08"])
def test_what_is_not_avro_of_the_schema_is_shown_with_the_reason(content: bytes) -> None:
    found = shown(content, format_of("avro", json.dumps(AVRO)))
    assert found.form in ("text", "hex") and found.problem.startswith("it is not avro of this schema: ")


NOTHING = {"type": "record", "name": "Nothing", "fields": [{"name": "n", "type": "null"}]}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "record", "name": "L", "fields": [{"name": "n", "type": ["null", "L"]}]}, "'L' contains itself"),
        ({"type": "record", "name": "L", "fields": [{"name": "n", "type": {"type": "array", "items": "L"}}]}, "itself"),
        ({"type": "array", "items": "null"}, "take no bytes"),
        ({"type": "array", "items": NOTHING}, "take no bytes"),
        ({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}, "take no bytes"),
        ({"type": "map", "values": {"type": "array", "items": "null"}}, "take no bytes"),
    ],
)
def test_a_schema_by_which_a_few_bytes_could_end_the_process_is_refused(schema: Any, why: str) -> None:
    with pytest.raises(BadOption, match=why):
        format_of("avro", json.dumps(schema))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array", "items": ["null", "int"]}, [None, 1]),
        ({"type": "map", "values": "null"}, {"a": None}),
        (
            {
                "type": "record",
                "name": "Twice",
                "fields": [
                    {"name": "x", "type": {"type": "record", "name": "P", "fields": [{"name": "n", "type": "int"}]}},
                    {"name": "y", "type": "P"},
                ],
            },
            {"x": {"n": 1}, "y": {"n": 2}},
        ),
        ({"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["X"]}}, ["X"]),
        (
            {
                "type": "record",
                "name": "Two",
                "fields": [
                    {"name": "a", "type": {"type": "fixed", "name": "F", "size": 2}},
                    {"name": "b", "type": {"type": "array", "items": "F"}},
                ],
            },
            {"a": "6162", "b": ["6364"]},
        ),
    ],
)
def test_a_schema_that_only_looks_like_one_of_these_is_used(schema: Any, value: Any) -> None:
    given = {"a": b"ab", "b": [b"cd"]} if isinstance(value, dict) and "b" in value else value
    assert json.loads(shown(packed(schema, given), format_of("avro", json.dumps(schema))).text) == value


@pytest.mark.parametrize("schema", ["", "{", '{"type": "nonsense"}', "[" * 5000, "7"])
def test_what_is_not_a_schema_of_avro_is_refused(schema: str) -> None:
    with pytest.raises(BadOption, match="this is not an Avro schema"):
        format_of("avro", schema)


def descriptors(*names: str) -> descriptor_pb2.FileDescriptorSet:
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    for name in names:
        message = file.message_type.add(name=name)
        message.field.add(name="ware_name", number=1, type=9, label=1)
        message.nested_type.add(name="Inner")
    return descriptor_pb2.FileDescriptorSet(file=[file])


def message_of(found: descriptor_pb2.FileDescriptorSet, name: str, **fields: Any) -> bytes:
    pool = descriptor_pool.DescriptorPool()
    for file in found.file:
        pool.Add(file)
    made: bytes = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))(**fields).SerializeToString()
    return made


def test_protobuf_is_decoded_by_its_descriptors_also_behind_the_header_of_a_registry() -> None:
    found = descriptors("Ware", "Other")
    schema = base64.b64encode(found.SerializeToString()).decode()
    content = message_of(found, "shop.Ware", ware_name="tea")
    expected = Shown("protobuf", '{\n  "ware_name": "tea"\n}', len(content))
    assert shown(content, format_of("protobuf", schema, "shop.Ware")) == expected
    framed = b"\0\0\0\0\x07\x04\x00\x02" + content
    assert shown(framed, format_of("protobuf", schema, "shop.Ware", is_framed=True)).text == expected.text
    broken = shown(b"\x0a\xff", format_of("protobuf", schema, "shop.Ware"))
    assert broken.problem.startswith("it is not protobuf of this schema: ")
    with pytest.raises(BadOption, match="name the type of the message") as error:
        format_of("protobuf", schema)
    assert error.value.advice == "there are shop.Ware, shop.Other, shop.Ware.Inner, shop.Other.Inner"
    with pytest.raises(BadOption, match=r"'shop\.None' is not a message of these"):
        format_of("protobuf", schema, "shop.None")


def test_the_only_message_of_descriptors_need_not_be_named() -> None:
    found = descriptors("Ware")
    del found.file[0].message_type[0].nested_type[:]
    schema = base64.b64encode(found.SerializeToString()).decode()
    content = message_of(found, "shop.Ware", ware_name="tea")
    assert json.loads(shown(content, format_of("protobuf", schema)).text) == {"ware_name": "tea"}


def test_descriptors_that_are_none_or_not_whole_are_refused() -> None:
    with pytest.raises(BadOption, match="not in base64"):
        format_of("protobuf", "???")
    with pytest.raises(BadOption, match="not a whole FileDescriptorSet"):
        format_of("protobuf", base64.b64encode(b"\xff\xff").decode(), "x")
    alone = descriptor_pb2.FileDescriptorProto(name="a.proto", dependency=["missing.proto"])
    schema = base64.b64encode(descriptor_pb2.FileDescriptorSet(file=[alone]).SerializeToString()).decode()
    with pytest.raises(BadOption, match="not a whole FileDescriptorSet"):
        format_of("protobuf", schema, "x")


def test_a_registrys_header_ends_where_its_numbers_say() -> None:
    assert without_framing(b"\0abcdrest", has_indexes=False) == b"rest"
    assert without_framing(b"\0abcd\x00rest", has_indexes=True) == b"rest"
    assert without_framing(b"\0abcd\x02\x06rest", has_indexes=True) == b"rest"
    for wrong in (b"\0abc", b"\1abcdrest"):
        with pytest.raises(ValueError, match="header"):
            without_framing(wrong, has_indexes=False)
    with pytest.raises(ValueError, match="names a type in 100 types"):
        without_framing(b"\0abcd\xc8\x01rest", has_indexes=True)


# --- pages of records


class Logs:
    """Partitions of a topic, each a list of batches; the cluster that a page is read from."""

    def __init__(self, logs: Mapping[int, Sequence[bytes]], starts: Mapping[int, int] | None = None) -> None:
        self.logs = {index: b"".join(batches) for index, batches in logs.items()}
        self.batches = logs
        self.starts = starts or {}
        self.reads: list[tuple[int, int, int]] = []
        self.corrupt_at = -1

    def end(self, index: int) -> int:
        return max((header.last_offset + 1 for header in browsing.batches(self.logs[index])), default=0)

    def list_offsets(
        self, asked: Mapping[tuple[str, int], int], isolation: int | None = None, **_: Any
    ) -> dict[Any, Found]:
        found = {}
        for (topic, index), timestamp in asked.items():
            if timestamp == browsing.EARLIEST:
                offset = self.starts.get(index, 0)
            elif timestamp == browsing.LATEST:
                offset = self.end(index)
            else:
                offset = 2 if timestamp == 1_002 else -1
            found[topic, index] = Found(offset, -1, -1)
        return found

    def read(self, topic: str, partition: int, start: int, end: int, **how: int) -> Generator[Fetched, None, None]:
        self.reads.append((partition, start, end))
        assert how["max_bytes"] == browsing.FETCH_BYTES and how["isolation"] == 0
        for batch in self.batches[partition]:
            (header,) = browsing.batches(batch)
            if header.base_offset == self.corrupt_at:
                raise CorruptRecords(
                    topic, partition, start, 1, is_old=False, size=9, log_start_offset=0, high_watermark=9
                )
            if start <= header.last_offset and header.base_offset < end:
                yield Fetched(memoryview(batch), header.last_offset + 1, end, end, 0, (), 0, 1)


def batch(base: int, *keys: str, **how: Any) -> bytes:
    rows = [(1_000 + base + at, key.encode(), b"v", ()) for at, key in enumerate(keys)]
    return build(rows, base_offset=base, **how)


def wanted(*partitions: int, **how: Any) -> Wanted:
    return Wanted("t", partitions or (0,), **how)


def offsets(page: browsing.Page) -> list[tuple[int, int]]:
    return [(one.partition, one.record.offset) for one in page.seen]


OF_A_TRANSACTION = {"transactional": True, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
BATCHES = [batch(0, "a", "b", "c"), batch(3, "a", "b"), batch(5, "c", "a", **OF_A_TRANSACTION)]
LOG = Logs({0: BATCHES})


@pytest.mark.parametrize(
    ("how", "found", "following"),
    [
        ({"start": "earliest", "limit": 4}, [0, 1, 2, 3], 4),
        ({"start": "latest", "limit": 3}, [4, 5, 6], 7),
        ({"start": "latest", "limit": 50}, [0, 1, 2, 3, 4, 5, 6], 7),
        ({"start": "offset", "number": 4, "limit": 2}, [4, 5], 6),
        ({"start": "offset", "number": 99, "limit": 2}, [], 7),
        ({"start": "time", "number": 1_002, "limit": 2}, [2, 3], 4),
        ({"start": "time", "number": 9_999, "limit": 2}, [], 7),
        ({"start": "earliest", "positions": {0: 5}, "limit": 2}, [5, 6], 7),
        ({"start": "earliest", "key": b"a", "limit": 2}, [0, 3], 4),
        ({"start": "earliest", "key": b"c", "limit": 9}, [2, 5], 7),
    ],
)
def test_a_page_begins_where_it_is_asked_for_and_says_where_the_next_one_does(
    how: dict[str, Any], found: list[int], following: int
) -> None:
    page = browse(LOG, wanted(**how), Budget())
    assert (offsets(page), page.next, page.stopped) == ([(0, at) for at in found], {0: following}, "")


def test_records_of_a_transaction_are_marked_and_markers_are_left_out() -> None:
    log = Logs({0: [*BATCHES, batch(7, "marker", control=True, transactional=True), batch(8, "z")]})
    page = browse(log, wanted(start="offset", number=4), Budget())
    assert [(one.record.offset, one.is_transactional) for one in page.seen] == [
        (4, False),
        (5, True),
        (6, True),
        (8, False),
    ]


def test_a_log_that_begins_late_or_has_gaps_is_read_from_what_there_is() -> None:
    log = Logs({0: [batch(10, "a"), batch(20, "b")]}, starts={0: 10})
    page = browse(log, wanted(start="offset", number=0, limit=2), Budget())
    assert (offsets(page), page.next, log.reads) == ([(0, 10), (0, 20)], {0: 21}, [(0, 10, 21)])


def test_each_partition_has_its_share_and_the_page_is_in_the_order_of_time() -> None:
    log = Logs({0: [batch(0, "a", "a", "a")], 1: [batch(0, "b")], 2: []})
    page = browse(log, wanted(0, 1, 2, start="earliest", limit=8), Budget())
    assert offsets(page) == [(0, 0), (1, 0), (0, 1)]
    assert (page.next, page.ends) == ({0: 2, 1: 1, 2: 0}, {0: 3, 1: 1, 2: 0})
    assert [index for index, _, _ in log.reads] == [0, 1], "an empty one is not read"
    assert offsets(browse(log, wanted(0, 1, 2, start="latest", limit=2), Budget())) == [(1, 0), (0, 2)]


def test_a_page_ends_when_its_bytes_are_over_and_goes_on_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsing, "BYTES_MAX", len(batch(0, "a", "b", "c")))
    log = Logs({0: BATCHES, 1: [batch(0, "z")]})
    page = browse(log, wanted(0, 1, start="earliest", key=b"z"), Budget())
    assert (offsets(page), page.next, page.examined) == ([], {0: 3, 1: 0}, 3)
    assert page.stopped.endswith("MiB were read")


def test_a_page_has_no_more_bytes_of_records_than_a_bound_however_small_they_were_as_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(browsing, "BYTES_MAX", 20_000)
    rows = [(1, None, b"0" * 9_000, ()) for _ in range(2)]
    small = [build(rows, base_offset=base, codec=Codec.GZIP) for base in (0, 2, 4)]
    assert sum(map(len, small)) < 1_000
    log = Logs({0: [b"".join(small)]})

    def read(*_: Any, **__: Any) -> Generator[Fetched, None, None]:
        yield Fetched(memoryview(log.logs[0]), 6, 6, 6, 0, (), 0, 1)

    monkeypatch.setattr(log, "read", read)
    page = browse(log, wanted(start="earliest"), Budget())
    assert (offsets(page), page.next) == ([(0, 0), (0, 1), (0, 2)], {0: 3})
    assert page.stopped.endswith("MiB of records")


def test_the_time_is_looked_at_after_each_batch_of_a_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Logs({0: [batch(0, "a"), batch(1, "b")]})
    now = [0.0]

    def read(*_: Any, **__: Any) -> Generator[Fetched, None, None]:
        now[0] = 99.0
        yield Fetched(memoryview(log.logs[0]), 2, 2, 2, 0, (), 0, 1)

    monkeypatch.setattr(log, "read", read)
    page = browse(log, wanted(start="earliest", key=b"none"), Budget(lambda: now[0]))
    assert page.next[0] < 2


def test_a_page_ends_when_its_time_is_over_also_in_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsing, "LOOK_EVERY", 1)
    times = iter([0.0] + [1.0] * 6 + [99.0] * 50)
    page = browse(Logs({0: BATCHES}), wanted(start="earliest", key=b"none"), Budget(lambda: next(times)))
    assert 0 < page.next[0] < 7
    assert page.stopped == "5 s are over"


def test_a_batch_that_cannot_be_read_is_named_and_passed_over() -> None:
    broken = bytearray(build([(1, None, b"x" * 200, ())], base_offset=2, codec=Codec.GZIP))
    broken[70:80] = b"\xff" * 10
    log = Logs({0: [batch(0, "a", "b"), bytes(broken), batch(3, "c")]})
    page = browse(log, wanted(start="earliest"), Budget())
    assert offsets(page) == [(0, 0), (0, 1), (0, 3)]
    assert len(page.unread) == 1 and page.unread[0].startswith("partition 0, batch at offset 2: ")


def test_what_is_no_batch_ends_the_partition_and_is_named() -> None:
    log = Logs({0: [batch(0, "a"), batch(1, "b")]})
    log.corrupt_at = 1
    page = browse(log, wanted(start="earliest"), Budget())
    assert (offsets(page), page.next, len(page.unread)) == ([(0, 0)], {0: 1}, 1)


def test_a_partition_is_named_by_its_number_and_all_are_without_one() -> None:
    assert partitions_in("", [0, 1]) == (0, 1)
    assert partitions_in("1", [0, 1]) == (1,)
    assert partitions_in("2", [0, 1]) is None
    assert partitions_in("x", [0, 1]) is None
