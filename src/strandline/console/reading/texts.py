"""Bytes of a record as text: as JSON, text, hexadecimal, or by a schema that the user gives."""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

from strandline.base.value import Value
from strandline.client.errors import BadOption
from strandline.console.reading.avro import avro_reader
from strandline.console.reading.framing import without_framing
from strandline.console.reading.protobuf import protobuf_reader

AUTO, JSON, TEXT, HEX, AVRO, PROTOBUF = "auto", "json", "text", "hex", "avro", "protobuf"
SHOWN_MAX = 32 << 10  # bytes of a key, value or header that are shown
DECODED_MAX = 1 << 20  # bytes that are decoded by a schema: they may become far more in memory
HEX_WIDTH = 16
Reader = Callable[[bytes], Any]  # raises ValueError


class Shown(Value, frozen=True):
    """`form`: what it is shown as; "null" if there is none. `problem`: why it is not what was asked for."""

    form: str
    text: str = ""
    size: int = 0
    is_cut: bool = False
    problem: str = ""


class Format(Value, frozen=True):
    """What bytes are to be shown as. `read` decodes Avro and Protobuf."""

    name: str = AUTO
    read: Reader | None = None


def format_of(name: str, schema: str = "", message: str = "", is_framed: bool = False) -> Format:
    """`schema`: Avro's JSON, or a FileDescriptorSet in base64, in which `message` is a type. `is_framed`: the data
    begins with the header of a schema registry. Raises BadOption."""
    if name in (AUTO, JSON, TEXT, HEX):
        return Format(name)
    if name == AVRO:
        decode = avro_reader(schema)
    elif name == PROTOBUF:
        decode = protobuf_reader(in_base64(schema), message)
    else:
        raise BadOption(f"'{name}' is not a format", f"there are {', '.join((AUTO, JSON, TEXT, HEX, AVRO, PROTOBUF))}")
    if not is_framed:
        return Format(name, decode)
    return Format(name, lambda content: decode(without_framing(content, has_indexes=name == PROTOBUF)))


def in_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise BadOption("the FileDescriptorSet is not in base64") from None


def shown(content: bytes | None, wanted: Format) -> Shown:
    if content is None:
        return Shown("null")
    if wanted.read is not None:
        if len(content) > DECODED_MAX:
            return without_schema(content, AUTO, f"it is too large to be decoded: {len(content)} bytes")
        try:
            return fitted(wanted.name, as_json(wanted.read(content)), len(content))
        except (ValueError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            return without_schema(content, AUTO, f"it is not {wanted.name} of this schema: {why}")
    return without_schema(content, wanted.name)


def without_schema(content: bytes, name: str, problem: str = "") -> Shown:
    size, head = len(content), content[:SHOWN_MAX]
    if name in (AUTO, JSON) and size <= SHOWN_MAX:
        try:
            return fitted(JSON, as_json(json.loads(content)), size, problem)
        except (ValueError, RecursionError):
            problem = problem or ("it is not valid JSON" if name == JSON else "")
    elif name == JSON:
        problem = f"it is too large to be shown as JSON: {size} bytes"
    if name == HEX:
        return Shown(HEX, dump(head), size, size > len(head), problem)
    text = as_text(head, is_cut=size > len(head))
    if text is None or (name == AUTO and not is_readable(text)):
        if name == TEXT:
            problem = "it is not UTF-8"
        return Shown(HEX, dump(head), size, size > len(head), problem)
    return Shown(TEXT, text, size, size > len(head), problem)


def fitted(form: str, text: str, size: int, problem: str = "") -> Shown:
    """A few bytes of Avro can be a long text."""
    return Shown(form, text[:SHOWN_MAX], size, len(text) > SHOWN_MAX, problem)


def as_text(content: bytes, is_cut: bool) -> str | None:
    """None: it is not UTF-8. The last character may be cut in two."""
    for dropped in range(4 if is_cut else 1):
        try:
            return content[: len(content) - dropped].decode()
        except UnicodeDecodeError:
            continue
    return None


def is_readable(text: str) -> bool:
    return all(char.isprintable() or char in "\t\r\n" for char in text)


def dump(content: bytes) -> str:
    lines = []
    for at in range(0, len(content), HEX_WIDTH):
        row = content[at : at + HEX_WIDTH]
        plain = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:08x}  {row.hex(' '):<{HEX_WIDTH * 3 - 1}}  {plain}")
    return "\n".join(lines)


def as_json(value: Any) -> str:
    """Not much more than is shown: what nests deeply is mostly indentation, and could be a thousand times its size."""
    pieces, size = [], 0
    for piece in ENCODER.iterencode(value):
        pieces.append(piece)
        size += len(piece)
        if size > SHOWN_MAX:
            break
    return "".join(pieces)


def plain(value: Any) -> Any:
    """What JSON does not have: bytes as hexadecimal, and times, decimals and UUIDs as texts."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return dict(value) if isinstance(value, Mapping) else str(value)


ENCODER = json.JSONEncoder(indent=2, ensure_ascii=False, default=plain)
