"""Variable-length integers: zigzag (record fields) and unsigned (frames of metadata records).

Reading raises `ValueError` at the end of the input or when a number has more than 10 bytes (64 bits).
"""

from strandline.base.ports import Buffer


def append_unsigned(out: bytearray, value: int) -> None:
    """Append `value`, seven bits a byte, lowest first."""
    assert value >= 0
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def append_signed(out: bytearray, value: int) -> None:
    """Append `value` in zigzag form: 0, -1, 1, -2 … become 0, 1, 2, 3 …"""
    append_unsigned(out, value << 1 if value >= 0 else (-value << 1) - 1)


def read_unsigned(buffer: Buffer, position: int) -> tuple[int, int]:
    """The number at `position`, and the position after it."""
    result = shift = 0
    end = min(len(buffer), position + 10)
    while position < end:
        byte = buffer[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
    raise ValueError("a variable-length integer has no end")


def read_signed(buffer: Buffer, position: int) -> tuple[int, int]:
    """The zigzag number at `position`, and the position after it."""
    if position < len(buffer) and buffer[position] < 0x80:  # nearly all numbers of a record
        raw = buffer[position]
        return (raw >> 1) ^ -(raw & 1), position + 1
    raw, position = read_unsigned(buffer, position)
    return (raw >> 1) ^ -(raw & 1), position
