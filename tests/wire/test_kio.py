"""Every message in every version against kio, an independent implementation: our bytes are its bytes.

Values are generated field by field for both sides at once: our layout and kio's dataclass are walked together, so a
message that is added to `wire.messages` is covered without a line here.
"""

import io
import pkgutil
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import MISSING, fields
from dataclasses import Field as KioField
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_writer
from kio.serial._introspect import EntityField, EntityTupleField, classify_field, get_field_tag
from tests.rows import each

import strandline.wire.messages
from strandline.base.ids import ZERO_UUID, Uuid
from strandline.wire.api import OWN_KEYS
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.codec_plan import Field, Layout, Shape, Type, layout_of
from strandline.wire.primitive import Malformed
from strandline.wire.schema import Message

# Versions of ours that kio does not have, and why that is right.
NOT_IN_KIO: dict[str, str] = {
    "ElectLeadersRequest-v3": "KIP-966's, which Apache Kafka has not shipped: test_own_apis.py",
    "ElectLeadersResponse-v3": "KIP-966's, which Apache Kafka has not shipped: test_own_apis.py",
    "DeleteGroupsRequest-v3": "newer than kio 0.6.5, which ends at v2",
    "DeleteGroupsResponse-v3": "newer than kio 0.6.5, which ends at v2; it adds ErrorMessage",
    "TxnOffsetCommitRequest-v6": "newer than kio 0.6.5, which ends at v5: test_offsets_by_topic_id.py",
    "TxnOffsetCommitResponse-v6": "newer than kio 0.6.5, which ends at v5: test_offsets_by_topic_id.py",
}

# Tags of our own begin here, far above Kafka's: optional extras, which readers that do not know them skip.
OWN_TAGS = 10_000

INTEGERS = {"b": 2**7, "h": 2**15, "i": 2**31, "q": 2**63}
UNSIGNED = {"H": 2**16, "I": 2**32}


class Case(NamedTuple):
    cls: type[Message]
    version: int

    def __str__(self) -> str:
        return f"{self.cls.__name__}-v{self.version}"


class Both(NamedTuple):
    """The same value as we and as kio write it down."""

    ours: Any
    kios: Any


def cases() -> Iterator[Case]:
    for module in pkgutil.walk_packages(strandline.wire.messages.__path__, "strandline.wire.messages."):
        namespace = vars(import_module(module.name))
        for cls in namespace.values():
            if not isinstance(cls, type) or not issubclass(cls, Message) or cls.__module__ != namespace["__name__"]:
                continue
            if cls.kind in ("request", "response") and cls.api_key < OWN_KEYS:  # those of our own: test_own_apis.py
                yield from (Case(cls, version) for version in cls.versions)


CASES = list(cases())
KNOWN = [case for case in CASES if str(case) not in NOT_IN_KIO and case.cls.__name__ not in NOT_IN_KIO]


@cache
def kio_class(case: Case) -> Any:
    name = case.cls.__module__.rpartition(".")[2]
    module: ModuleType = import_module(f"kio.schema.{name}.v{case.version}.{case.cls.kind}")
    return getattr(module, case.cls.__name__)


def stem(name: str) -> str:
    """kio leaves out the unit where it gives the value a type."""
    return name.rstrip("_").removesuffix("_ms")


def paired(layout: Layout, kio: Any) -> list[tuple[Field, KioField[Any]]]:
    kafkas = [field for field in layout.fields if field.tag is None or field.tag < OWN_TAGS]
    ours = {stem(field.name): field for field in kafkas if field.present}
    theirs = {stem(field.name): field for field in fields(kio)}
    assert set(ours) == set(theirs), f"fields of {layout.cls.__name__}"
    for name, field in ours.items():
        assert field.tag == get_field_tag(theirs[name]), f"tag of {field.name}"
    return [(ours[name], theirs[name]) for name in ours]


class Generator:
    def __init__(self, seed: int, *, filled: float) -> None:
        self.rng = random.Random(seed)
        self.filled = filled  # how likely nullable and tagged values are given

    def group(self, layout: Layout, kio: Any) -> Both:
        ours, kios = {}, {}
        for field, other in paired(layout, kio):
            optional = other.default is not MISSING or other.default_factory is not MISSING
            if field.tag is not None and optional and self.rng.random() > self.filled:
                ours[field.name] = field.default
                continue  # both take their defaults, which must then be the same
            ours[field.name], kios[other.name] = self.value(field.type, other)
        return Both(layout.cls(**ours), kio(**kios))

    def value(self, type_: Type, other: KioField[Any]) -> Both:
        if type_.nullable and self.rng.random() > self.filled:
            return Both(None, None)
        found = classify_field(other)
        if type_.shape is Shape.ARRAY:
            assert type_.item is not None
            count = self.rng.choice((0, 1, 3, 3 if type_.item.shape is Shape.GROUP else 130))
            items = [self.one(type_.item, other, found) for _ in range(count)]
            return Both(tuple(item.ours for item in items), tuple(item.kios for item in items))
        return self.one(type_, other, found)

    def one(self, type_: Type, other: KioField[Any], found: Any) -> Both:
        rng = self.rng
        if type_.shape is Shape.GROUP:
            assert type_.layout is not None
            assert isinstance(found, EntityField | EntityTupleField)
            return self.group(type_.layout, found.type_)
        kind = other.metadata["kafka_type"]
        match type_.shape:
            case Shape.STRING:
                assert kind == "string"
                text = "ü" * rng.choice((0, 1, 20, 200))
                return Both(text, text)
            case Shape.BYTES | Shape.RECORDS:
                assert kind == type_.shape.value
                data = rng.randbytes(rng.choice((0, 1, 200)))
                return Both(data, data)
            case _:
                return self.fixed(type_.letter, kind)

    def fixed(self, letter: str, kind: str) -> Both:
        rng = self.rng
        if kind == "uuid":
            assert letter == "16s"
            raw = rng.choice((ZERO_UUID, Uuid(rng.randbytes(16))))
            return Both(raw, None if raw == ZERO_UUID else UUID(bytes=raw))
        if kind == "error_code":
            assert letter == "h"
            code = rng.randrange(-1, 100)
            return Both(code, KioErrorCode(code))
        if kind == "datetime_i64":
            assert letter == "q"
            ms = rng.randrange(2**40)
            return Both(ms, datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms))
        if kind in ("timedelta_i32", "timedelta_i64"):
            assert letter == kind.replace("timedelta_i32", "i").replace("timedelta_i64", "q")
            ms = rng.randrange(-(2**31), 2**31)
            return Both(ms, timedelta(milliseconds=ms))
        if kind == "bool":
            assert letter == "?"
            flag = rng.random() < 0.5
            return Both(flag, flag)
        if kind == "float64":
            assert letter == "d"
            return Both(1.25, 1.25)
        if kind.startswith("uint"):
            number = rng.randrange(UNSIGNED[letter])
        else:
            number = rng.choice((-1, 0, rng.randrange(-INTEGERS[letter], INTEGERS[letter])))
        assert {"b": "int8", "h": "int16", "i": "int32", "q": "int64", "H": "uint16", "I": "uint32"}[letter] == kind
        return Both(number, number)


def kio_bytes(value: Any) -> bytes:
    with io.BytesIO() as stream:
        entity_writer(type(value))(stream, value)
        return stream.getvalue()


def test_there_are_messages() -> None:
    assert len(KNOWN) > 200


@each("case", KNOWN, ids=str)
def test_our_bytes_are_kios_bytes(case: Case) -> None:
    layout = layout_of(case.cls, case.version)
    for seed, filled in enumerate((1.0, 0.0, 0.5)):
        value = Generator(seed, filled=filled).group(layout, kio_class(case))
        data = kio_bytes(value.kios)
        assert encode_bytes(value.ours, case.version) == data
        assert decode_all(case.cls, case.version, data) == value.ours
        if case.version in case.cls.flexible:
            assert data.endswith(b"\x00") or layout.tagged
            if not layout.tagged:
                unknown = data[:-1] + b"\x01\xce\x10\x03abc"
                assert decode_all(case.cls, case.version, unknown) == value.ours


@each("case", KNOWN, ids=str)
def test_a_message_cut_or_garbled_is_malformed_and_nothing_else(case: Case) -> None:
    value = Generator(4, filled=0.9).group(layout_of(case.cls, case.version), kio_class(case)).ours
    data = encode_bytes(value, case.version)
    rng = random.Random(5)
    for size in range(len(data)) if len(data) < 100 else [rng.randrange(len(data)) for _ in range(50)]:
        with pytest.raises(Malformed):
            decode_all(case.cls, case.version, data[:size])
    for _ in range(30):
        broken = bytearray(data or b"\x00")
        broken[rng.randrange(len(broken))] = rng.choice((0, 0x7F, 0x80, 0xFF))
        for garbage in (bytes(broken), rng.randbytes(rng.randrange(60))):
            with suppress(Malformed):
                decode_all(case.cls, case.version, garbage)
