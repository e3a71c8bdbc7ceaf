"""Avro by a schema that the user gives; fastavro decodes it.

Data may come from anybody. fastavro's decoder recurses in C, where data that nests deep enough ends the process, and
it makes an array of as many items as its data says. So a schema that contains itself is rejected, and one with items
that take no bytes: then data cannot nest deeper than the schema, and has no more items than bytes. The time that a
decimal takes grows with the square of its size, and nothing else runs meanwhile, so they are bounded.
"""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

from strandline.client.errors import BadOption, StrandlineError

DECIMAL_BYTES_MAX = 16 << 10  # of data whose schema has a decimal
NAMED = ("record", "error", "enum", "fixed")


def avro_reader(schema: str) -> Callable[[bytes], Any]:
    """What decodes one value, and raises ValueError. Raises BadOption if the schema is not one, or not a safe one."""
    try:
        import fastavro
    except ImportError:
        raise StrandlineError("Avro needs fastavro", "pip install 'strandline[avro]'") from None
    try:
        parsed = fastavro.parse_schema(json.loads(schema))
        walk = Walk()
        why = walk.why_unsafe(parsed)
    except (ValueError, TypeError, KeyError, RecursionError, fastavro.schema.SchemaParseException) as error:
        raise BadOption(f"this is not an Avro schema: {said(error)}") from None
    if why:
        raise BadOption(f"this Avro schema is not used: {why}")

    def read(content: bytes) -> Any:
        if walk.has_decimal and len(content) > DECIMAL_BYTES_MAX:
            raise ValueError(f"{len(content)} bytes are too many for a schema with a decimal")
        left = io.BytesIO(content)
        try:
            value = fastavro.schemaless_reader(left, parsed, None)
        except Exception as error:  # it raises whatever its parts raise
            raise ValueError(said(error)) from None
        rest = len(content) - left.tell()
        if rest:
            raise ValueError(f"{rest} bytes are left behind the value")
        return value

    return read


def said(error: Exception) -> str:
    return str(error) or type(error).__name__


class Walk:
    """Through a parsed schema, in which names are whole."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}  # the least bytes of each named type that is known
        self.open: list[str] = []
        self.has_decimal = False

    def why_unsafe(self, schema: Any) -> str:
        """Empty: it is not."""
        try:
            self.size(schema)
        except Unsafe as unsafe:
            return str(unsafe)
        return ""

    def size(self, schema: Any) -> int:
        """How many bytes a value has at least."""
        if isinstance(schema, list):
            return 1 + min((self.size(branch) for branch in schema), default=0)
        if isinstance(schema, str):
            if schema in self.open:
                raise Unsafe(f"'{schema}' contains itself, so data could nest without end")
            return self.sizes.get(schema, 0 if schema == "null" else 1)
        assert isinstance(schema, Mapping), schema
        kind = schema["type"]
        self.has_decimal = self.has_decimal or schema.get("logicalType") == "decimal"
        if kind in NAMED:
            return self.named(kind, schema)
        if kind in ("array", "map"):
            inside = self.size(schema["items" if kind == "array" else "values"])
            if kind == "array" and inside == 0:
                raise Unsafe("an array has items that take no bytes, so a few bytes could be any number of them")
            return 1
        return self.size(kind)

    def named(self, kind: str, schema: Mapping[str, Any]) -> int:
        name = schema["name"]
        if kind == "fixed":
            size = int(schema["size"])
        elif kind == "enum":
            size = 1
        else:
            self.open.append(name)
            size = sum(self.size(field["type"]) for field in schema["fields"])
            self.open.pop()
        self.sizes[name] = size
        return size


class Unsafe(Exception):
    pass
