"""Variable-length integers, against kafka-python's."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.wire.varint import append_signed, append_unsigned, read_signed, read_unsigned

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kafka.record.util import decode_varint, encode_varint

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(value=INT64)
def test_signed_agrees_with_kafka_python(value: int) -> None:
    ours, theirs = bytearray(b"x"), bytearray()
    append_signed(ours, value)
    encode_varint(value, theirs.append)
    assert ours[1:] == theirs
    assert read_signed(ours, 1) == (value, len(ours))
    assert decode_varint(memoryview(ours), 1) == (value, len(ours))


@given(value=st.integers(0, (1 << 64) - 1))
def test_unsigned_comes_back(value: int) -> None:
    out = bytearray()
    append_unsigned(out, value)
    assert len(out) <= 10
    assert read_unsigned(bytes(out), 0) == (value, len(out))


@pytest.mark.parametrize(("value", "expected"), [(0, "00"), (-1, "01"), (1, "02"), (-64, "7f"), (64, "8001")])
def test_zigzag(value: int, expected: str) -> None:
    out = bytearray()
    append_signed(out, value)
    assert out.hex() == expected


@pytest.mark.parametrize("raw", [b"", b"\x80", b"\xff" * 9, b"\x80" * 11 + b"\x01"])
def test_a_number_without_an_end_is_an_error(raw: bytes) -> None:
    with pytest.raises(ValueError, match="no end"):
        read_unsigned(raw, 0)
