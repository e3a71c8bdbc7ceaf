"""Every codec in both directions, against aiokafka's; limits and garbage."""

import contextlib
import warnings
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.rows import each

from strandline.wire.compress import (
    DEFAULT_LEVEL,
    XERIAL_BLOCK_SIZE,
    XERIAL_HEADER,
    Codec,
    Corrupt,
    Oversized,
    compress,
    decompress,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from aiokafka import codec as aiokafka

PACKED = [codec for codec in Codec if codec is not Codec.NONE]
PLAIN = bytes(range(256)) * 600 + b"the end"  # several xerial blocks
NAMES = {Codec.GZIP: "gzip", Codec.SNAPPY: "snappy", Codec.LZ4: "lz4", Codec.ZSTD: "zstd"}


def theirs(direction: str, codec: Codec) -> Callable[[bytes], bytes]:
    found: Callable[[bytes], bytes] = getattr(aiokafka, f"{NAMES[codec]}_{direction}")
    return found


@each("codec", Codec)
@each("plain", [b"", b"x", PLAIN, bytes(XERIAL_BLOCK_SIZE)], ids=len)
def test_what_is_compressed_comes_back(codec: Codec, plain: bytes) -> None:
    packed = compress(codec, memoryview(plain))
    assert decompress(codec, memoryview(packed)) == plain


@pytest.mark.parametrize("codec", PACKED)
def test_another_client_reads_what_we_compress(codec: Codec) -> None:
    assert bytes(theirs("decode", codec)(compress(codec, PLAIN))) == PLAIN


@pytest.mark.parametrize("codec", PACKED)
def test_we_read_what_another_client_compresses(codec: Codec) -> None:
    assert decompress(codec, theirs("encode", codec)(PLAIN)) == PLAIN


def test_raw_snappy_is_accepted() -> None:
    raw = bytes(aiokafka.snappy_encode(PLAIN, xerial_compatible=False))
    assert not raw.startswith(XERIAL_HEADER)
    assert decompress(Codec.SNAPPY, raw) == PLAIN


def test_the_java_client_needs_independent_lz4_blocks() -> None:
    flags = compress(Codec.LZ4, PLAIN)[4]
    assert flags >> 6 == 1, "the version of the frame format"
    assert flags & 0x20, "blocks are independent"


LEVELS = {Codec.GZIP: (-1, *range(1, 10)), Codec.LZ4: range(1, 18), Codec.ZSTD: (-131072, -7, 0, *range(1, 23))}
PROSE = b"".join(b'{"id":%d,"name":"n%d","square":%d}' % (i, 7 * i, i * i) for i in range(2000))


@each(("codec", "level"), [(codec, level) for codec, levels in LEVELS.items() for level in levels])
def test_every_level_that_a_topic_may_have_is_read_by_others(codec: Codec, level: int) -> None:
    assert bytes(theirs("decode", codec)(compress(codec, PROSE, level))) == PROSE


def test_no_level_is_kafkas_default() -> None:
    for codec, level in DEFAULT_LEVEL.items():
        assert compress(codec, PROSE) == compress(codec, PROSE, level)


@pytest.mark.parametrize(("codec", "weak", "strong"), [(Codec.GZIP, 1, 9), (Codec.LZ4, 3, 12), (Codec.ZSTD, -7, 19)])
def test_a_higher_level_packs_better(codec: Codec, weak: int, strong: int) -> None:
    assert len(compress(codec, PROSE, strong)) < len(compress(codec, PROSE, weak)) < len(PROSE)


def test_the_default_of_lz4_is_its_fast_compressor_and_all_others_are_thorough() -> None:
    """As in Kafka, where level 9 is the one that came before there were levels."""
    fast = len(compress(Codec.LZ4, PROSE, 9))
    assert all(len(compress(Codec.LZ4, PROSE, level)) < fast for level in (1, 2, 3, 8, 10, 17))


@pytest.mark.parametrize("codec", Codec)
def test_the_limit_is_exact(codec: Codec) -> None:
    packed = compress(codec, PLAIN)
    assert decompress(codec, packed, len(PLAIN)) == PLAIN
    with pytest.raises(Oversized, match="limit"):
        decompress(codec, packed, len(PLAIN) - 1)


@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_is_refused_at_the_limit(codec: Codec) -> None:
    bomb = compress(codec, bytes(8 << 20))
    with pytest.raises(Corrupt, match="limit"):
        decompress(codec, bomb, 1 << 20)


@pytest.mark.parametrize("codec", PACKED)
def test_a_cut_off_end_is_noticed(codec: Codec) -> None:
    packed = compress(codec, PLAIN)
    for size in (0, 1, len(packed) // 2, len(packed) - 1):
        with pytest.raises(Corrupt):
            decompress(codec, packed[:size])


@pytest.mark.parametrize("codec", PACKED)
@settings(max_examples=60, deadline=None)
@given(garbage=st.binary(max_size=200), start=st.integers(0, 40), keep=st.booleans())
@example(garbage=XERIAL_HEADER + b"\x7f\xff\xff\xff", start=0, keep=False)
@example(garbage=XERIAL_HEADER + b"\xff\xff\xff\xff", start=0, keep=False)
@example(garbage=XERIAL_HEADER[:10], start=0, keep=False)
def test_garbage_is_corrupt_or_some_bytes(codec: Codec, garbage: bytes, start: int, keep: bool) -> None:
    packed = compress(codec, b"so much for that" * 9)
    whole = packed[:start] + garbage + packed[start + len(garbage) :] if keep else garbage
    with contextlib.suppress(Corrupt):
        assert len(decompress(codec, whole, 1 << 16)) <= 1 << 16
