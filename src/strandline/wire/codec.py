"""Bytes <-> messages: one compiled codec per message class and version.

A codec is Python source written for exactly one layout (`codec_plan`, `codec_decode`, `codec_encode`) and compiled on
first use, so that starting up costs nothing and decoding asks no questions about versions.

What decoding gives: strings are `str`; Bytes fields are `bytes`; Records are a `memoryview` of the caller's buffer, not
copied, or None; arrays are tuples; fields that the version lacks have their default.

Invariants:
  - decoding raises `Malformed` for any bytes that are not a message, and nothing else;
  - nothing is allocated from a length or a count before it was compared with the bytes that are left;
  - encoding copies no records.
"""

from collections.abc import Callable
from functools import cache
from struct import error as struct_error
from struct import pack, unpack_from
from typing import Any, TypeVar

from strandline.base.ports import Buffer
from strandline.wire.codec_decode import DecoderWriter
from strandline.wire.codec_encode import EncoderWriter
from strandline.wire.codec_plan import Layout, layout_of
from strandline.wire.codec_source import Source
from strandline.wire.primitive import Malformed, cut, read_unsigned, unsigned
from strandline.wire.schema import Message

M = TypeVar("M", bound=Message)
Decoder = Callable[[memoryview, int], tuple[Any, int]]
Encoder = Callable[[Any, bytearray], list[Buffer]]
ITEMS_MAX = 250_000


def decode_all(cls: type[M], version: int, buffer: Buffer) -> M:
    """A message that fills the buffer to its end."""
    value: M
    value, position = decoder_of(cls, version)(memoryview(buffer), 0)
    if position != len(buffer):
        raise Malformed(f"{cls.__name__} v{version}: {len(buffer) - position} bytes too many")
    return value


def encode_bytes(value: Message, version: int) -> bytes:
    """A message in one piece: for small messages, whose records may be copied."""
    return b"".join(encoder_of(type(value), version)(value, bytearray()))


@cache
def decoder_of(cls: type[Message], version: int, counts: bool = False) -> Decoder:
    """(buffer, position) -> (message, position after it). The message must have that version. Compiled when first asked
    for, and apart from the encoder: a broker seldom needs both directions of one message.

    `counts`: `Malformed` if all arrays together have more than `ITEMS_MAX` items. A few bytes can be an item that takes
    a hundred in memory, and time to handle; only what is large can have so many."""
    layout = layout_of(cls, version)
    names: dict[str, Any] = {
        "read_unsigned": read_unsigned,
        "unpack_from": unpack_from,
        "Malformed": Malformed,
        "Unreadable": (struct_error, IndexError, UnicodeDecodeError),
    }
    source = Source(names)
    source.add("size = len(buffer)")
    if counts:
        source.add(f"items_left = {ITEMS_MAX}")
        names["TOO_MANY"] = f"more than {ITEMS_MAX} items"
    source.open("try:")
    message = DecoderWriter(source, counts=counts).layout(layout)
    source.add(f"return {message}, position")
    source.close()
    source.open("except Unreadable as error:")
    source.add(f"raise Malformed('{layout.cls.__name__}: ' + str(error)) from None")
    source.close()
    return _compiled("def decode(buffer, position):", "decode", layout, source)


@cache
def encoder_of(cls: type[Message], version: int) -> Encoder:
    """(message, what comes before it) -> buffers, the first of which begins with that. Compiled when first used."""
    layout = layout_of(cls, version)
    source = Source({"unsigned": unsigned, "pack": pack, "cut": cut})
    source.add("chunks = []")
    writer = EncoderWriter(source)
    writer.layout(layout, "message")
    writer.flush()
    assert not writer.in_tag
    source.add("if out or not chunks: chunks.append(out)")
    source.add("return chunks")
    return _compiled("def encode(message, out):", "encode", layout, source)


def _compiled(head: str, name: str, layout: Layout, source: Source) -> Callable[..., Any]:
    assert source.depth == 1, "a block is open"
    text = "\n".join([head, *source.lines])
    exec(compile(text, f"<{name} {layout.cls.__name__}>", "exec"), source.constants)
    function: Callable[..., Any] = source.constants[name]
    return function
