"""Mutants of the wire: batches and records."""

from tests.mutants.mutant import Breaks, Mutant, table

WIRE = table(
    Mutant(
        "checksums are not looked at",
        "wire/batch.py",
        "    if header.crc != crc_of(header, buffer):\n        return ErrorCode.CORRUPT_MESSAGE\n",
        "",
        Breaks.DURABILITY,
        (
            "unit/wire/test_batch.py::test_a_flipped_bit_anywhere_below_the_crc_is_noticed",
            "unit/wire/test_batch.py::test_a_producer_may_not_send",
        ),
    ),
    Mutant(
        "a batch's length may lie about its records",
        "wire/batch.py",
        "    if header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:",
        "    if header.record_count <= 0:",
        Breaks.DURABILITY,
        ("unit/wire/test_batch.py::test_a_producer_may_not_send",),
    ),
    Mutant(
        "sequences do not wrap",
        "wire/batch.py",
        "        return (self.base_sequence + self.last_offset_delta) & SEQUENCE_MAX",
        "        return self.base_sequence + self.last_offset_delta",
        Breaks.AGREEMENT,
        (
            "unit/wire/test_batch.py::test_attributes_say_what_was_asked_for",
            "unit/log/producers/test_producers.py::test_a_batch_that_wraps_is_continued_where_it_ended",
        ),
        holds=("KAFKA-5283",),
    ),
    Mutant(
        "a walk goes on behind a length that no batch has",
        "wire/batch.py",
        "    if length < HEADER_SIZE - LOG_OVERHEAD or buffer[position + MAGIC_AT] != MAGIC:",
        "    if length < 0 or buffer[position + MAGIC_AT] != MAGIC:",
        Breaks.AGREEMENT,
        ("unit/wire/test_batch.py::test_an_impossible_length_ends_the_walk",),
    ),
    Mutant(
        "offset deltas outside of a batch are read",
        "wire/record.py",
        (
            "    if not 0 <= offset_delta <= header.last_offset_delta:\n"
            '        raise Corrupt(f"offset delta {offset_delta} lies outside of the batch")\n'
        ),
        "",
        Breaks.AGREEMENT,
        ("unit/wire/test_batch_damaged.py::test_a_record_that_lies_outside_of_its_batch_is_corrupt",),
    ),
    Mutant(
        "bytes behind the last record are overlooked",
        "wire/record.py",
        (
            "    if position != len(plain):\n"
            '        raise Corrupt(f"{len(plain) - position} bytes follow the last record")\n'
        ),
        "",
        Breaks.ANSWERS,
        ("unit/wire/test_batch_damaged.py::test_a_batch_with_more_records_than_it_says_is_corrupt",),
    ),
    Mutant(
        "a cleaner's mark is taken from producers",
        "wire/batch.py",
        "    if header.is_control or header.has_delete_horizon:",
        "    if header.is_control:",
        Breaks.DURABILITY,
        ("unit/wire/test_batch.py::test_a_producer_may_not_send",),
    ),
    Mutant(
        "a batch that is packed anew keeps its sum",
        "wire/batch.py",
        "    crc = crc32c(memoryview(batch)[ATTRIBUTES_AT:])\n",
        "    crc = header.crc\n",
        Breaks.DURABILITY,
        ("unit/wire/test_batch_repacked.py::test_there_and_back_is_the_same_batch",),
    ),
)
