"""Records of internal topics: a message behind an int16, its version."""

from typing import TypeVar

from strandline.base.ports import Buffer
from strandline.wire.codec import decode_all
from strandline.wire.compress import Corrupt
from strandline.wire.schema import Message

T = TypeVar("T", bound=Message)


def prefixed_version(buffer: Buffer | None) -> int:
    if buffer is None or len(buffer) < 2:
        raise Corrupt("a record of an internal topic without a version")
    return int.from_bytes(buffer[:2], "big", signed=True)


def decode_body(cls: type[T], version: int, buffer: Buffer | None) -> T:
    assert buffer is not None
    try:
        return decode_all(cls, version, memoryview(buffer)[2:])
    except ValueError as error:
        raise Corrupt(f"{cls.__name__}: {error}") from None
