"""How a message is written down.

A message is a `Struct` whose annotations are its schema table: one line per field, in wire order, with the type, the
versions in which the field exists, the versions in which it may be null, its tag, and its default. One class serves
all versions; versions live in the codec (`wire.codec`).

    class FetchPartition(Group):
        partition: Int32 = 0
        current_leader_epoch: Annotated[Int32, V("9+")] = -1
        replica_directory_id: Annotated[UuidField, V("17+"), Tag(0)] = ZERO_UUID

    @message(key=1, kind="request", versions="4-18", flexible="12+")
    class FetchRequest(Message):
        cluster_id: Annotated[NullableString, V("12+"), Tag(0)] = None
        topics: tuple[FetchTopic, ...] = ()

Rules:
  - every field has a default (Kafka's, or Kafka's implicit one: 0, False, "", empty), so that a value may be built with
    only the fields that matter, and a field that a version lacks decodes to its default;
  - a field without `V` exists in all versions of its message;
  - `Nullable` without versions means nullable wherever the field exists;
  - an array of groups is `tuple[Group, ...]`, an array of primitives `tuple[Int32, ...]`; a nullable array is
    `Annotated[tuple[...] | None, Nullable("1+")]`; a nullable single group (struct) is
    `Annotated[Group | None, Nullable()]`;
  - a field that a version does not have is left out silently when encoding;
  - class names are Kafka's struct names; where request and response of one module collide, the response's struct
    ends in `Response`. Field names are Kafka's in snake_case.
"""

from collections.abc import Callable
from typing import Annotated, ClassVar, TypeVar, dataclass_transform

from msgspec import Struct

from strandline.base.ids import Uuid
from strandline.base.ports import Buffer
from strandline.base.value import Value


class V(Value, frozen=True):
    """The versions in which a field exists: "3+", "3-7", "3"."""

    versions: str


class Nullable(Value, frozen=True):
    """The versions in which null is allowed."""

    versions: str = "0+"


class Tag(Value, frozen=True):
    """The field is tagged (KIP-482) with this number, in the flexible versions of its `V`."""

    number: int
    versions: str | None = None  # when a field is tagged only in some of its versions


class Primitive(Value, frozen=True):
    """A wire type by Kafka's name."""

    name: str


Bool = Annotated[bool, Primitive("bool")]
Int8 = Annotated[int, Primitive("int8")]
Int16 = Annotated[int, Primitive("int16")]
Int32 = Annotated[int, Primitive("int32")]
Int64 = Annotated[int, Primitive("int64")]
UInt16 = Annotated[int, Primitive("uint16")]
Float64 = Annotated[float, Primitive("float64")]
UuidField = Annotated[Uuid, Primitive("uuid")]
String = Annotated[str, Primitive("string")]
NullableString = Annotated[str | None, Primitive("string"), Nullable()]
Bytes = Annotated[Buffer, Primitive("bytes")]

# Record batches: encoded from one buffer or several (they are spliced in without a copy), decoded to one memoryview.
RecordsValue = Buffer | tuple[Buffer, ...] | None
Records = Annotated[RecordsValue, Primitive("records"), Nullable()]


@dataclass_transform(frozen_default=True)
class Group(Struct, frozen=True, gc=False):
    """A structure inside a message."""


@dataclass_transform(frozen_default=True)
class Message(Struct, frozen=True, gc=False):
    """A request, a response, a header or a record's payload."""

    api_key: ClassVar[int]  # or, of a record's payload, its type
    key: ClassVar[int]  # the same, except in a message that has a field of that name
    kind: ClassVar[str]  # "request", "response", "header", "data"
    versions: ClassVar[range]  # every version that the codec reads and writes
    flexible: ClassVar[range]  # the versions with compact types and tagged fields; empty if none


M = TypeVar("M", bound=type[Message])

KINDS = ("request", "response", "header", "data")


def message(*, key: int = -1, kind: str = "data", versions: str = "0", flexible: str = "none") -> Callable[[M], M]:
    """Class decorator: which API a message belongs to and which versions its codec has."""

    def decorate(cls: M) -> M:
        assert kind in KINDS, f"{cls.__name__}: a {kind} is no kind of message"
        assert key >= 0 or kind not in ("request", "response"), f"{cls.__name__} belongs to no API"
        cls.api_key, cls.kind = key, kind
        if "key" not in cls.__struct_fields__:
            cls.key = key
        cls.versions = parse_versions(versions, 0)
        cls.flexible = range(0) if flexible == "none" else parse_versions(flexible, cls.versions[-1])
        assert cls.versions, f"{cls.__name__} has no version"
        assert not cls.flexible or cls.flexible[-1] == cls.versions[-1], "flexible versions stay flexible"
        return cls

    return decorate


def parse_versions(text: str, highest: int) -> range:
    """ "4-18" → range(4, 19); "12+" → range(12, highest + 1); "3" → range(3, 4)."""
    if text.endswith("+"):
        assert 0 <= int(text[:-1]) <= highest, f"{text!r} begins after version {highest}"
        return range(int(text[:-1]), highest + 1)
    first, _, last = text.partition("-")
    assert 0 <= int(first) <= int(last or first), f"{text!r} are no versions"
    return range(int(first), int(last or first) + 1)
