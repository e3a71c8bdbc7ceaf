"""Compression of record batches, and bounded decompression.

Kafka's framings: gzip (RFC 1952), snappy in xerial's framing (raw snappy is accepted too, some clients send it),
LZ4 frames with independent blocks (the Java client refuses linked ones), zstd frames.

Invariant: decompressing never allocates more than a small multiple of its limit, whatever the input says.
"""

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum

import cramjam

from strandline.base.ports import Buffer

DECOMPRESSED_SIZE_MAX = 256 << 20

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
XERIAL_BLOCK_SIZE = 32 << 10
BLOCK_SIZE = struct.Struct(">i")
GZIP_PIECE = 16 << 10


class Codec(IntEnum):
    """By Kafka's numbers, the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


# Kafka's defaults (KIP-390). The codecs that are left out have no levels.
DEFAULT_LEVEL = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}
LZ4_FAST, LZ4_THOROUGH = 0, 3  # the library's own: below 3 it always compresses fast, above 12 no better


class Corrupt(ValueError):
    """Bytes that are not what they claim to be; the message says where."""


class Oversized(Corrupt):
    """More bytes than the limit. They may be sound."""


def compress(codec: Codec, plain: Buffer, level: int | None = None) -> bytes:
    """The compressed form of `plain`; NONE returns a copy. `level` is Kafka's, and its default if not given."""
    assert level is None or codec in DEFAULT_LEVEL, f"{codec.name} has no levels"
    chosen = DEFAULT_LEVEL.get(codec, 0) if level is None else level
    match codec:
        case Codec.NONE:
            return bytes(plain)
        case Codec.GZIP:
            return zlib.compress(plain, chosen, 31)
        case Codec.SNAPPY:
            return compress_snappy(plain)
        case Codec.LZ4:
            # As in Kafka, the default is not the 9th level but the fast compressor, and all others are thorough.
            lz4_level = LZ4_FAST if chosen == DEFAULT_LEVEL[codec] else max(chosen, LZ4_THOROUGH)
            frame = cramjam.lz4.Compressor(level=lz4_level, content_checksum=False, block_linked=False)
            frame.compress(bytes(plain))
            return bytes(frame.finish())
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(bytes(plain), chosen))


def decompress(codec: Codec, packed: Buffer, limit: int = DECOMPRESSED_SIZE_MAX) -> bytes:
    """The plain form of `packed`. Raises `Corrupt` if it is malformed, `Oversized` if larger than `limit` bytes."""
    match codec:
        case Codec.NONE:
            if len(packed) > limit:
                raise Oversized(f"{len(packed)} bytes are more than the limit of {limit}")
            return bytes(packed)
        case Codec.GZIP:
            return decompress_gzip(packed, limit)
        case Codec.SNAPPY:
            return decompress_snappy(packed, limit)
        case Codec.LZ4:
            return decompress_growing(cramjam.lz4.decompress_into, "lz4", packed, limit)
        case Codec.ZSTD:
            return decompress_growing(cramjam.zstd.decompress_into, "zstd", packed, limit)


def compress_snappy(plain: Buffer) -> bytes:
    """Xerial's framing: a header, then blocks with their sizes."""
    whole = memoryview(plain)
    parts = [XERIAL_HEADER]
    for start in range(0, len(whole), XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(bytes(whole[start : start + XERIAL_BLOCK_SIZE])))
        assert block, "no block is empty"
        parts += (BLOCK_SIZE.pack(len(block)), block)
    return b"".join(parts)


def decompress_snappy(packed: Buffer, limit: int) -> bytes:
    """Xerial's framing, or one raw block."""
    whole = bytes(packed)
    if not whole.startswith(XERIAL_MAGIC):
        return decompress_snappy_block(whole, limit)
    position, parts, size = len(XERIAL_HEADER), [], 0
    if len(whole) < position:
        raise Corrupt("the header of the snappy frame is cut off")
    while position < len(whole):
        if len(whole) - position < 4:
            raise Corrupt("the size of a snappy block is cut off")
        (block_size,) = BLOCK_SIZE.unpack_from(whole, position)
        position += 4
        if not 0 <= block_size <= len(whole) - position:
            raise Corrupt(f"a snappy block of {block_size} bytes does not fit")
        parts.append(decompress_snappy_block(whole[position : position + block_size], limit - size))
        size += len(parts[-1])
        position += block_size
    assert size <= limit and position == len(whole)
    return b"".join(parts)


def decompress_snappy_block(packed: bytes, limit: int) -> bytes:
    assert limit >= 0, "what earlier blocks have left of it"
    try:
        size = cramjam.snappy.decompress_raw_len(packed)
        if size > limit:
            raise Oversized(f"a snappy block of {size} bytes is larger than the limit of {limit}")
        return bytes(cramjam.snappy.decompress_raw(packed))
    except cramjam.DecompressionError as error:
        raise Corrupt(f"snappy: {error}") from None


def decompress_gzip(packed: Buffer, limit: int) -> bytes:
    """All members of a gzip file, one after another. It is read in pieces: what follows a member is copied, and there
    may be a member every twenty bytes."""
    whole, parts, size, position = memoryview(packed), [], 0, 0
    member = zlib.decompressobj(31)
    while True:
        piece = whole[position : position + GZIP_PIECE]
        if not piece:
            raise Corrupt("gzip: the end is missing")
        try:
            parts.append(member.decompress(piece, limit - size + 1))
        except zlib.error as error:
            raise Corrupt(f"gzip: {error}") from None
        size += len(parts[-1])
        if size > limit:
            raise Oversized(f"gzip: larger than the limit of {limit} bytes")
        position += len(piece) - len(member.unused_data)
        if member.eof and position == len(whole):
            return b"".join(parts)
        if member.eof:
            member = zlib.decompressobj(31)


def decompress_growing(into: Callable[[bytes, bytearray], int], name: str, packed: Buffer, limit: int) -> bytes:
    """Frames need not say their size, so try a buffer that grows up to the limit. The library does not say whether
    the buffer was too small, so corrupt input costs a few tries too."""
    whole = bytes(packed)
    if not whole:
        raise Corrupt(f"{name}: no frame")
    size = min(limit, max(4096, 4 * len(whole)))
    while True:
        assert size <= limit, "no buffer is larger than the limit"
        out = bytearray(size)
        try:
            return bytes(memoryview(out)[: into(whole, out)])
        except cramjam.DecompressionError as error:
            if "failed to write whole buffer" not in str(error):
                raise Corrupt(f"{name}: {error}") from None
            if size >= limit:
                raise Oversized(f"{name}: larger than the limit of {limit} bytes") from None
        size = min(limit, 4 * size)
