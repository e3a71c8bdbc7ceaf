"""Which offsets a batch reads, and in which pieces."""

import time

from hypothesis import given
from hypothesis import strategies as st

from strandline_spark.topic.planning import TopicRange, share, split

SIZES = st.lists(st.integers(0, 1000), max_size=8)


def ranges(*sizes: int) -> list[TopicRange]:
    return [TopicRange("t", "id", number, 100, 100 + size, 7, 6) for number, size in enumerate(sizes)]


def sizes(pieces: list[TopicRange]) -> list[tuple[int, int]]:
    return [(each.partition, each.size) for each in pieces]


def test_without_a_wish_each_partition_is_one_piece_and_empty_ones_are_none() -> None:
    assert sizes(split(ranges(5, 0, 7), None, None)) == [(0, 5), (2, 7)]


def test_large_partitions_are_cut_until_there_are_enough_pieces() -> None:
    assert sizes(split(ranges(10, 90), 5, None)) == [(0, 10), (1, 22), (1, 23), (1, 22), (1, 23)]


def test_thousands_of_partitions_are_cut_in_no_time() -> None:
    began = time.process_time()
    assert len(split(ranges(*[1000] * 4000), 20_000, None)) == 20_000
    assert time.process_time() - began < 2


def test_no_piece_has_more_records_than_was_asked_for() -> None:
    assert sizes(split(ranges(10, 4), None, 4)) == [(0, 3), (0, 3), (0, 4), (1, 4)]


def test_few_records_make_fewer_pieces_than_was_asked_for() -> None:
    assert sizes(split(ranges(2, 1), 10, None)) == [(0, 1), (0, 1), (1, 1)]
    assert split([], 10, 1) == []


def test_only_the_first_piece_knows_the_epoch_before_it() -> None:
    assert [(each.start_epoch, each.end_epoch) for each in split(ranges(9), 3, None)] == [(6, 7), (-1, 7), (-1, 7)]


@given(SIZES, st.none() | st.integers(1, 40), st.none() | st.integers(1, 300))
def test_pieces_cover_their_ranges_without_gap_or_overlap(
    given_sizes: list[int], least: int | None, most: int | None
) -> None:
    whole = ranges(*given_sizes)
    cut = split(whole, least, most)
    for each in whole:
        mine = [(piece.start, piece.end) for piece in cut if piece.partition == each.partition]
        assert all(start < end for start, end in mine)
        assert [offset for start, end in mine for offset in range(start, end)] == list(range(each.start, each.end))
    assert most is None or all(piece.size <= most for piece in cut)
    assert least is None or len(cut) >= min(least, sum(given_sizes))


def test_a_trigger_is_shared_in_proportion_to_what_waits() -> None:
    assert share({"a": 300, "b": 100, "c": 0}, 40) == {"a": 30, "b": 10, "c": 0}


def test_a_small_partition_beside_a_huge_one_does_not_starve() -> None:
    assert share({"huge": 1_000_000, "small": 1}, 10) == {"huge": 9, "small": 1}


def test_each_of_many_partitions_gets_one_even_if_that_is_more_than_the_limit() -> None:
    assert share(dict.fromkeys("abcde", 100), 2) == dict.fromkeys("abcde", 1)


@given(SIZES, st.integers(1, 3000))
def test_shares_are_fair_and_sum_up_to_the_limit(waiting: list[int], limit: int) -> None:
    rows = dict(enumerate(waiting))
    given_to = share(rows, limit)
    some = [key for key, size in rows.items() if size]
    assert list(given_to) == list(rows)
    assert all(given_to[key] <= size for key, size in rows.items())
    assert all(given_to[key] >= 1 for key in some)
    assert sum(given_to.values()) == min(max(limit, len(some)), sum(waiting))
    if sum(waiting) > limit >= len(some):
        fair = {key: size * limit / sum(waiting) for key, size in rows.items()}
        assert all(given_to[key] <= fair[key] + 1 for key in some)
