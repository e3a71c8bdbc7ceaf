"""The header that clients of a schema registry write before the data: a zero byte and the id of the schema in four
bytes; for Protobuf, then the path to the message type in its file, as numbers of varying length."""

from strandline.wire.varint import read_signed

MAGIC = 0
HEADER_SIZE = 5
DEPTH_MAX = 32  # of a type in types


def without_framing(content: bytes, has_indexes: bool) -> bytes:
    """Raises ValueError."""
    if len(content) < HEADER_SIZE or content[0] != MAGIC:
        raise ValueError("it does not begin with the header of a schema registry")
    if not has_indexes:
        return content[HEADER_SIZE:]
    count, position = read_signed(content, HEADER_SIZE)
    if not 0 <= count <= DEPTH_MAX:
        raise ValueError(f"its header names a type in {count} types")
    for _ in range(count):
        _, position = read_signed(content, position)
    return content[position:]
