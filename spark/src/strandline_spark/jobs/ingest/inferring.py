"""Columns from examples: what a sample of JSON values has in common, as a declaration that one could have written.

A field is of the narrowest type that fits all examples; what fits none stays JSON text, a string. No field is required:
a sample cannot say what must be there. The same examples give the same columns, in the order in which they come up.
"""

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from strandline_spark import durable
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.ingest.columns import OF_RECORDS, Column, checked, columns_of
from strandline_spark.tables.schema import quoted

LONG_MAX = (1 << 63) - 1
TIMESTAMP = re.compile(r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?$")
DATE = re.compile(r"^\d{4}-\d\d-\d\d$")
NOTHING = "void"


def infer(values: Iterable[bytes | None]) -> tuple[Column, ...]:
    """Columns for the JSON objects among some values. Raises StrandlineError if there is none."""
    kinds: dict[str, Any] = {}
    objects = 0
    for value in values:
        try:
            content = json.loads(value) if value is not None else None
        except ValueError:
            continue
        if isinstance(content, dict):
            objects += 1
            kinds = both(kinds, kind_of(content))
    if not kinds:
        raise StrandlineError(
            f"no columns can be inferred: {objects} of the records of the sample are JSON objects",
            'declare them: [value.columns] id = "long not null"',
        )
    lowered = [name.lower() for name in kinds]
    return checked(
        [
            Column(free_name(name, lowered), text_of(kind), (name,))
            for name, kind in kinds.items()
            if name == first_of(name, kinds)
        ]
    )


def keep(columns: Sequence[Column], path: str) -> None:
    """Write the columns down: the next run has the same, whatever the topic's records are then."""
    content = {each.name: {"type": each.type, "path": list(each.path)} for each in columns}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    durable.write(Path(path), json.dumps(content, indent=2).encode())


def kept(path: str) -> tuple[Column, ...] | None:
    """The columns that a run before this one has written down."""
    try:
        with open(path, encoding="utf-8") as file:
            return columns_of(json.load(file))
    except FileNotFoundError:
        return None


def first_of(name: str, kinds: Iterable[str]) -> str:
    """Of names that differ in upper and lower case alone, Spark takes one."""
    return next(each for each in kinds if each.lower() == name.lower())


def free_name(name: str, taken: Sequence[str]) -> str:
    """Records have columns of their own: a field named so gets an underscore."""
    if name.lower() in OF_RECORDS:
        name += "_"
        while name.lower() in taken:
            name += "_"
    return name


def kind_of(value: Any) -> Any:
    """A type's name; a dict for an object, a list of one kind for a list."""
    match value:
        case None:
            return NOTHING
        case bool():
            return "boolean"
        case int():
            return "bigint" if -LONG_MAX - 1 <= value <= LONG_MAX else "string"
        case float():
            return "double"
        case str():
            return "timestamp" if TIMESTAMP.match(value) else "date" if DATE.match(value) else "string"
        case list():
            kind: Any = NOTHING
            for each in value:
                kind = both(kind, kind_of(each))
            return [kind]
    assert isinstance(value, dict)
    return {name: kind_of(each) for name, each in value.items()}


def both(one: Any, other: Any) -> Any:
    """The narrowest kind that both fit."""
    if one == other or other == NOTHING:
        return one
    if one == NOTHING:
        return other
    match one, other:
        case dict(), dict():
            names = [*one, *(name for name in other if name not in one)]
            return {name: both(one.get(name, NOTHING), other.get(name, NOTHING)) for name in names}
        case [inner], [further]:
            return [both(inner, further)]
        case ("bigint", "double") | ("double", "bigint"):
            return "double"
        case ("date", "timestamp") | ("timestamp", "date"):
            return "timestamp"
    return "string"


def text_of(kind: Any) -> str:
    match kind:
        case dict() if kind:
            return f"STRUCT<{', '.join(f'{quoted(name)}: {text_of(inner)}' for name, inner in kind.items())}>"
        case [inner]:
            return f"ARRAY<{text_of(inner)}>"
        case str() if kind != NOTHING:
            return kind
    return "string"
