"""Keys and values of internal topics' records begin with an int16, their version. Reading raises only `Corrupt`."""

from typing import TypeVar

from strandline.base.ports import Buffer
from strandline.wire.codec import decode_all
from strandline.wire.compress import Corrupt
from strandline.wire.schema import Message


def prefixed_version(buffer: Buffer | None) -> int:
    if buffer is None or len(buffer) < 2:
        raise Corrupt("a record without a version")
    return int.from_bytes(buffer[:2], "big", signed=True)


T = TypeVar("T", bound=Message)


def decode_body(cls: type[T], version: int, buffer: Buffer | None) -> T:
    assert buffer is not None
    try:
        return decode_all(cls, version, memoryview(buffer)[2:])
    except ValueError as error:
        raise Corrupt(f"{cls.__name__}: {error}") from None
