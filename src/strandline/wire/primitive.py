"""The variable-length integers and the one error of the message codecs.

Invariant: whatever the bytes are, reading them raises nothing but `Malformed`, and nothing is allocated from a length
that was not compared with what is left in the buffer.
"""

from strandline.base.ports import Buffer


class Malformed(ValueError):
    """The bytes are not a message of this kind and version."""


def read_unsigned(buffer: Buffer, position: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes (32 bits), and the position after it."""
    value = 0
    try:
        for shift in (0, 7, 14, 21, 28):
            byte = buffer[position]
            position += 1
            if byte < 0x80:
                value |= byte << shift
                if value > 0xFFFF_FFFF:
                    break
                return value, position
            value |= (byte & 0x7F) << shift
    except IndexError:
        raise Malformed("truncated varint") from None
    raise Malformed("varint of more than 32 bits")


def unsigned(value: int) -> bytes:
    """An unsigned varint."""
    if value < 0x80:
        return ONE_BYTE[value]
    assert value <= 0xFFFF_FFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))


def cut(text: str) -> bytes:
    """As much of a text as a string with a length of 15 bits can have."""
    encoded = text.encode()
    if len(encoded) <= 0x7FFF:
        return encoded
    return encoded[:0x7FFF].decode(errors="ignore").encode()
