"""Messages that are well formed, and have numbers in them that nobody sound would send.

`message` builds any request from its schema: one element in each array, names and numbers as the caller knows them, and
instead of these whatever `hostile` names by its place.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from struct import pack_into
from typing import Any

from msgspec.structs import replace

from strandline.base.ids import ZERO_UUID
from strandline.base.value import Value
from strandline.wire.api import APIS, Api
from strandline.wire.batch import CRC_AT, crc_of, read_header
from strandline.wire.codec_plan import Field, Layout, Shape, Type, layout_of
from strandline.wire.schema import Message

TOPIC, GROUP = "strange", "strange-group"  # what the stranger has of its own
PLAIN_NUMBERS = {  # values that nobody need wonder at
    "voter_id": -1,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "timeout_ms": 500,
    "max_bytes": 1 << 20,
    "partition_max_bytes": 1 << 20,
    "num_partitions": 1,
    "replication_factor": -1,
    "count": 2,
    "producer_id": -1,
    "producer_epoch": -1,
    "acks": -1,
    "resource_type": 2,
    "resource_type_filter": 2,
    "resource_pattern_type": 3,
    "pattern_type_filter": 2,
    "operation": 3,
    "permission_type": 3,
}
PLAIN_TEXTS: dict[str, str | None] = {
    "configs.name": "retention.ms",
    "configs.value": "100000",
    "configuration_keys": "retention.ms",
    "resource_name": TOPIC,
    "resource_name_filter": TOPIC,
    "principal": "User:strange",
    "principal_filter": None,
    "creations.host": "*",
    "host_filter": None,
    "entity.entity_type": "user",
    "components.entity_type": "user",
    "ops.key": "request_percentage",
    "group_id": GROUP,
    "key": GROUP,
    "coordinator_keys": GROUP,
    "member_id": "",
    "group_instance_id": None,
    "transactional_id": None,
}

BITS = {"b": 8, "h": 16, "i": 32, "q": 64}
UNSIGNED = {"H": 16, "I": 32}
FLOAT = "d"
FLOATS = (float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1.7e308, 0.5)

TEXT = "s"
TEXTS = (
    "",
    "9" * 5_000,
    "0" * 5_000,
    "-1",
    "\0",
    "-9223372036854775809",
)  # of numbers, Python reads no more than 4,300 digits

Place = tuple[str, ...]  # the names of the fields, from the message inward
Wrong = dict[Place, int | str | float]


class Known(Value, frozen=True):
    """What somebody knows who makes up a message: values by the names of fields."""

    numbers: dict[str, int]
    texts: dict[str, str | None]  # also by two names, as in "configs.name"
    ids: dict[str, bytes]
    records: bytes = b""
    empty: tuple[Place, ...] = ()  # arrays with no element, unless the wrong value lies in it


def extremes(letter: str) -> Sequence[int | str | float]:
    """Where values of this type go wrong, if they go wrong."""
    if letter == TEXT:
        return TEXTS
    if letter == FLOAT:
        return FLOATS
    if letter in UNSIGNED:
        top = (1 << UNSIGNED[letter]) - 1
        return [0, 1, top - 1, top]
    top = (1 << (BITS[letter] - 1)) - 1
    return [-top - 1, -2, -1, 0, 1, top - 1, top]


def places(layout: Layout, within: Place = ()) -> Iterator[tuple[Place, str]]:
    """Every number and every text of a message, with its type's letter."""
    for field in layout.fields:
        if field.present:
            yield from places_of(field.type, (*within, field.name))


def places_of(kind: Type, at: Place) -> Iterator[tuple[Place, str]]:
    if kind.shape is Shape.ARRAY and kind.item is not None:
        yield from places_of(kind.item, at)
    elif kind.shape is Shape.GROUP and kind.layout is not None:
        yield from places(kind.layout, at)
    elif kind.shape is Shape.FIXED and kind.letter in (*BITS, *UNSIGNED, FLOAT):
        yield at, kind.letter
    elif kind.shape is Shape.STRING:
        yield at, TEXT


@cache
def request_layout(api: Api, version: int) -> Layout:
    return layout_of(api.request, version)


def message(api: Api, version: int, known: Known, hostile: Wrong) -> Any:
    return group(request_layout(api, version), (), known, hostile)


def group(layout: Layout, within: Place, known: Known, hostile: Wrong) -> Any:
    values = {
        field.name: value(field, field.type, (*within, field.name), known, hostile)
        for field in layout.fields
        if field.present
    }
    return layout.cls(**values)


def value(field: Field, kind: Type, at: Place, known: Known, hostile: Wrong) -> Any:
    name = at[-1]
    if at in hostile and kind.shape is not Shape.ARRAY:
        return hostile[at]
    match kind.shape:
        case Shape.ARRAY:
            assert kind.item is not None
            if at in known.empty and not any(wrong[: len(at)] == at for wrong in hostile):
                return ()
            return (value(field, kind.item, at, known, hostile),)
        case Shape.GROUP:
            assert kind.layout is not None
            return group(kind.layout, at, known, hostile)
        case Shape.STRING:
            text = known.texts.get(".".join(at[-2:]), known.texts.get(name, "strange"))
            return "strange" if text is None and not kind.nullable else text
        case Shape.BYTES:
            return b"strange"
        case Shape.RECORDS:
            return known.records
        case Shape.FIXED if kind.letter == "16s":
            return known.ids.get(name, ZERO_UUID)
        case Shape.FIXED if name in known.numbers and kind.letter in (*BITS, *UNSIGNED):
            return known.numbers[name]
        case _:
            default = field.default
            return default if isinstance(default, bool | int | float) else 0


def served(*, on_controller: bool) -> list[Api]:
    """What a listener answers."""
    return [api for api in APIS if (api.on_controller if on_controller else api.on_broker)]


def single_faults(cls: type[Message]) -> Iterator[Wrong]:
    """Each value of the newest version at each of its extremes, one at a time."""
    for at, letter in places(layout_of(cls, cls.versions[-1])):
        for number in extremes(letter):
            yield {at: number}


def altered(message: Any, wrong: Wrong) -> Any:
    """The message with other values at these places, in all elements of arrays."""
    for at, number in wrong.items():
        message = altered_at(message, at, number)
    return message


def altered_at(part: Any, at: Place, number: int | str | float) -> Any:
    if isinstance(part, tuple):
        return tuple(altered_at(one, at, number) for one in part)
    if not at:
        return number
    found = getattr(part, at[0])
    if found is None and len(at) > 1:
        return part
    return replace(part, **{at[0]: altered_at(found, at[1:], number)})


# Of a batch's header: where a number begins, and its type.
BATCH = {
    "base_offset": (0, "q"),
    "partition_leader_epoch": (12, "i"),
    "attributes": (21, "h"),
    "last_offset_delta": (23, "i"),
    "base_timestamp": (27, "q"),
    "max_timestamp": (35, "q"),
    "producer_id": (43, "q"),
    "producer_epoch": (51, "h"),
    "base_sequence": (53, "i"),
    "record_count": (57, "i"),
}


HEADER_EXTREMES = [(*where, number) for where in BATCH.values() for number in extremes(where[1])]


def batch_with(sound: bytes, position: int, letter: str, number: int | str | float) -> bytes:
    """The batch with one number of its header at an extreme, and a CRC that says that all is well."""
    batch = bytearray(sound)
    pack_into(f">{letter}", batch, position, number)
    pack_into(">I", batch, CRC_AT, crc_of(read_header(batch), batch))
    return bytes(batch)


def batches(sound: bytes) -> Iterator[bytes]:
    return (batch_with(sound, *extreme) for extreme in HEADER_EXTREMES)
