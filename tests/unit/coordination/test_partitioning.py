"""Which partition keeps a key, and which keys none can keep."""

from tests.rows import each

from strandline.coordination.partitioning import TEXT_BYTES_MAX, is_too_long, partition_for


def naive(key: str, partitions: int) -> int:
    code = 0
    units = key.encode("utf-16-be")
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2], "big")) % (1 << 32)
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return 0 if signed == -(1 << 31) else abs(signed) % partitions


@each(
    "key",
    ["", "g", "group-1", "é😀", "polygenelubricants", "x" * 500, "é" * 16_383, "😀" * 8_191, "y" * TEXT_BYTES_MAX],
)
def test_the_partition_follows_from_javas_hash_of_the_key(key: str) -> None:
    assert [partition_for(key, count) for count in (1, 7, 50)] == [naive(key, count) for count in (1, 7, 50)]


def test_a_key_may_be_as_long_as_a_record_can_have_it() -> None:
    for letter, size in (("x", 1), ("é", 2), ("😀", 4)):
        most = TEXT_BYTES_MAX // size
        assert not is_too_long(letter * most)
        assert is_too_long(letter * (most + 1))
