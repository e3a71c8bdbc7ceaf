"""Batches whose sum is right and whose records are not: whoever made them, they are not read as something else."""

import struct

import pytest

from strandline.wire.batch import ATTRIBUTES_AT, CRC_AT, HEADER_SIZE, build, crc_of, read_header
from strandline.wire.compress import Corrupt
from strandline.wire.record import records

LAST_OFFSET_DELTA_AT, RECORD_COUNT_AT = 23, 57
TWO = build([(0, b"a", b"1", ()), (0, b"b", b"2", ())])


def altered(at: int, value: int) -> bytes:
    """With another number at `at`, and a sum that is right."""
    batch = bytearray(TWO)
    struct.pack_into(">i", batch, at, value)
    struct.pack_into(">I", batch, CRC_AT, crc_of(read_header(batch), batch))
    assert len(batch) > HEADER_SIZE > ATTRIBUTES_AT
    return bytes(batch)


def test_a_record_that_lies_outside_of_its_batch_is_corrupt() -> None:
    """Its offset would be that of a record of the next batch."""
    batch = altered(LAST_OFFSET_DELTA_AT, 0)
    with pytest.raises(Corrupt, match="outside of the batch"):
        list(records(read_header(batch), batch))


def test_a_batch_with_more_records_than_it_says_is_corrupt() -> None:
    batch = altered(RECORD_COUNT_AT, 1)
    with pytest.raises(Corrupt, match="follow the last record"):
        list(records(read_header(batch), batch))


def test_a_batch_with_fewer_records_than_it_says_is_corrupt() -> None:
    batch = altered(RECORD_COUNT_AT, 3)
    with pytest.raises(Corrupt):
        list(records(read_header(batch), batch))
