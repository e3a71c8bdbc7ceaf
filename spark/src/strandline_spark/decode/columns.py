"""Which columns are wanted, in which order, as which Arrow types.

The types are those that PySpark makes of the sources' schemas (`to_arrow_schema(schema, timezone="UTC")`): Spark takes
record batches only if their schema is exactly that.
"""

from collections.abc import Iterable
from typing import NamedTuple, Self

import pyarrow as pa

HEADERS = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))

TYPES: dict[str, pa.DataType] = {
    # Columns of a record.
    "key": pa.binary(),
    "value": pa.binary(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "headers": HEADERS,
    "sequence": pa.int32(),
    # Columns of its batch.
    "timestampType": pa.int32(),
    "position": pa.int64(),
    "leader_epoch": pa.int32(),
    "producer_id": pa.int64(),
    "producer_epoch": pa.int32(),
    "is_control": pa.bool_(),
    "is_transactional": pa.bool_(),
    # Where it came from: the same in all rows of a call.
    "topic": pa.string(),
    "partition": pa.int32(),
    "topic_id": pa.string(),
    "broker": pa.int32(),
    "directory": pa.string(),
    "segment": pa.int64(),
}


class UnknownColumn(ValueError):
    """A column that no record has, or not as that type; the message says which there are."""


class Columns(NamedTuple):
    """The wanted columns. Pickles small."""

    schema: pa.Schema

    @classmethod
    def of(cls, wanted: pa.Schema | Iterable[str]) -> Self:
        """By an Arrow schema, which is then exactly that of the batches, or by names. Raises `UnknownColumn`."""
        if not isinstance(wanted, pa.Schema):
            wanted = pa.schema([pa.field(name, TYPES.get(name, pa.null())) for name in wanted])
        for field in wanted:
            if field.name not in TYPES:
                raise UnknownColumn(f"there is no column {field.name!r}; there are {', '.join(TYPES)}")
            if not same_type(field.type, TYPES[field.name]):
                raise UnknownColumn(f"the column {field.name!r} is {TYPES[field.name]}, not {field.type}: cast it")
        return cls(wanted)

    def has(self, name: str) -> bool:
        return bool(self.schema.get_field_index(name) >= 0)


def same_type(one: pa.DataType, two: pa.DataType) -> bool:
    """But for which of the inner fields may be null: what a schema says of that is kept."""
    if pa.types.is_list(two):
        return bool(pa.types.is_list(one) and same_type(one.value_type, two.value_type))
    if pa.types.is_struct(two):
        if not pa.types.is_struct(one) or [field.name for field in one] != [field.name for field in two]:
            return False
        return all(same_type(a.type, b.type) for a, b in zip(one, two, strict=True))
    return bool(one.equals(two))
