"""What a record's value or key becomes: columns, declared in words of SQL, by a JSON Schema, or by Spark's own JSON.

No Spark here: a declaration becomes the text of a schema, which Spark reads.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from strandline.base.value import Value
from strandline_spark.errors import StrandlineError
from strandline_spark.tables.schema import quoted

OF_RECORDS = ("topic", "partition", "offset", "timestamp", "key", "headers")  # columns that every row has or may have
EPOCHS = {"timestamp_seconds": 1, "timestamp_millis": 10**3, "timestamp_micros": 10**6}
NOT_NULL = re.compile(r"\s+not\s+null\s*$", re.IGNORECASE)


class Column(Value, frozen=True, forbid_unknown_fields=True):
    """`path` are the names of the JSON fields that lead to it."""

    name: str
    type: str
    path: tuple[str, ...]
    required: bool = False

    @property
    def json_type(self) -> str:
        """What stands in the JSON text: times as numbers are numbers there."""
        return "bigint" if self.type in EPOCHS else self.type


def column(name: str, spec: str | Mapping[str, Any]) -> Column:
    """`"long not null"`, or a table of type, path and required. `path` is `a.b`, or a list where names have dots."""
    if isinstance(spec, str):
        spec = {"type": spec}
    unknown = [key for key in spec if key not in ("type", "path", "required")]
    if unknown or not isinstance(spec.get("type"), str):
        raise StrandlineError(
            f"column {name} is declared as {dict(spec)!r}", 'write "long not null", or { type = "long", path = "a.b" }'
        )
    kind = NOT_NULL.sub("", spec["type"]).strip()
    path = spec.get("path", [name])
    names = tuple(path.split(".")) if isinstance(path, str) else tuple(path)
    if not names or not all(isinstance(each, str) and each for each in names):
        raise StrandlineError(f"column {name} has the path {path!r}", 'write path = "a.b"')
    is_required = bool(spec.get("required", kind != spec["type"].strip()))
    return Column(name, kind.lower() if kind.lower() in EPOCHS else kind, names, is_required)


def columns_of(declared: Mapping[str, str | Mapping[str, Any]]) -> tuple[Column, ...]:
    return checked([column(name, spec) for name, spec in declared.items()])


def columns_of_text(text: str) -> tuple[Column, ...]:
    """`id long not null, tags array<string>`: commas within brackets belong to the type."""
    found = []
    for part in split_outside_brackets(text):
        name, _, spec = part.strip().partition(" ")
        if not spec.strip():
            raise StrandlineError(f"{part.strip()!r} is not a column", "write a name and a type: id long not null")
        found.append(column(name.strip("`"), spec))
    return checked(found)


def split_outside_brackets(text: str) -> Iterator[str]:
    depth = start = 0
    for position, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            yield text[start:position]
            start = position + 1
    if text[start:].strip():
        yield text[start:]


def checked(columns: Sequence[Column]) -> tuple[Column, ...]:
    names = [each.name.lower() for each in columns]
    taken = [name for name in names if name in OF_RECORDS]
    if taken:
        raise StrandlineError(
            f"a column cannot be named {taken[0]}: every row has its record's value under that name",
            f'give it another name and a path: {taken[0]}_ = {{ type = "…", path = "{taken[0]}" }}',
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise StrandlineError(f"two columns have the name {twice[0]}")
    tree(columns)
    return tuple(columns)


def tree(columns: Sequence[Column]) -> dict[str, Any]:
    """The JSON object that the paths describe: a name leads to a type or to another object."""
    root: dict[str, Any] = {}
    for each in columns:
        place = root
        for name in each.path[:-1]:
            place = place.setdefault(name, {})
            if not isinstance(place, dict):
                raise StrandlineError(f"the path of {each.name} leads through {name}, which is itself a column")
        old = place.setdefault(each.path[-1], each.json_type)
        if old != each.json_type:
            raise StrandlineError(f"{'.'.join(each.path)} is declared as {old} and as {each.json_type}")
    return root


def ddl(columns: Sequence[Column], further: str = "") -> str:
    """The schema's text for Spark's from_json; `further` is one more column."""
    text = ", ".join(f"{quoted(name)} {kind_text(kind)}" for name, kind in tree(columns).items())
    return ", ".join(part for part in (text, further) if part)


def kind_text(kind: str | dict[str, Any]) -> str:
    if isinstance(kind, str):
        return kind
    return f"STRUCT<{', '.join(f'{quoted(name)}: {kind_text(inner)}' for name, inner in kind.items())}>"


def columns_of_file(text: str, where: str) -> tuple[Column, ...]:
    """A JSON Schema, or the JSON of a Spark schema."""
    try:
        spec = json.loads(text)
    except json.JSONDecodeError as error:
        raise StrandlineError(f"{where} is not valid JSON: {error}") from None
    if isinstance(spec, dict) and isinstance(spec.get("fields"), list):
        return checked([spark_column(field, where) for field in spec["fields"]])
    if isinstance(spec, dict) and isinstance(spec.get("properties"), dict):
        required = spec.get("required", [])
        definitions: Mapping[str, Any] = spec.get("$defs") or spec.get("definitions") or {}
        return checked(
            [
                Column(name, type_of_property(of, definitions, f"{where}: {name}"), (name,), name in required)
                for name, of in spec["properties"].items()
            ]
        )
    raise StrandlineError(
        f"{where} is neither a JSON Schema of an object (properties) nor a Spark schema (fields)",
        'or declare the columns: [value.columns] id = "long not null"',
    )


def spark_column(field: Mapping[str, Any], where: str) -> Column:
    if not isinstance(field, dict) or "name" not in field or "type" not in field:
        raise StrandlineError(f"{where} has a field without name or type: {field!r}")
    name = str(field["name"])
    return Column(name, spark_type(field["type"], f"{where}: {name}"), (name,), not field.get("nullable", True))


def spark_type(kind: Any, where: str) -> str:
    match kind:
        case str():
            return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(kind, kind)
        case {"type": "struct", "fields": [*fields]}:
            inner = ", ".join(f"{quoted(field['name'])}: {spark_type(field['type'], where)}" for field in fields)
            return f"STRUCT<{inner}>"
        case {"type": "array", "elementType": element}:
            return f"ARRAY<{spark_type(element, where)}>"
        case {"type": "map", "keyType": key, "valueType": value}:
            return f"MAP<{spark_type(key, where)}, {spark_type(value, where)}>"
    raise StrandlineError(f"{where} has an unknown type: {kind!r}")


SIMPLE = {"integer": "bigint", "number": "double", "boolean": "boolean"}
TEXTS = {"date-time": "timestamp", "date": "date"}


def type_of_property(of: object, definitions: Mapping[str, Any], where: str) -> str:
    """The type of one property of a JSON Schema. What has several types stays JSON text: a string."""
    if not isinstance(of, dict):
        return "string"
    reference = of.get("$ref")
    if isinstance(reference, str):
        name = reference.rsplit("/", 1)[-1]
        if name not in definitions:
            raise StrandlineError(f"{where} refers to {reference}, which is not in the file")
        rest = {key: value for key, value in definitions.items() if key != name}  # so that none leads back to itself
        return type_of_property(definitions[name], rest, where)
    kinds = of.get("type")
    chosen = [kind for kind in kinds if kind != "null"] if isinstance(kinds, list) else [kinds]
    match chosen:
        case [("integer" | "number" | "boolean") as kind]:
            return SIMPLE[kind]
        case ["string"]:
            return TEXTS.get(str(of.get("format")), "string")
        case ["array"]:
            return f"ARRAY<{type_of_property(of.get('items'), definitions, where)}>"
        case ["object"] if isinstance(of.get("properties"), dict):
            inner = ", ".join(
                f"{quoted(name)}: {type_of_property(each, definitions, f'{where}.{name}')}"
                for name, each in of["properties"].items()
            )
            return f"STRUCT<{inner}>"
        case ["object"] if isinstance(of.get("additionalProperties"), dict):
            return f"MAP<STRING, {type_of_property(of.get('additionalProperties'), definitions, where)}>"
    return "string"
