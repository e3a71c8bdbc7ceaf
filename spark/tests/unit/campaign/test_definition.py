"""Which blocks a campaign is cut into, and what is left of them."""

from hypothesis import given
from hypothesis import strategies as st

from strandline_spark.jobs.simulate.code import code_version
from strandline_spark.jobs.simulate.definition import (
    AGAIN,
    FIRST,
    Block,
    Campaign,
    block_named,
    blocks_left,
    differences,
    sampled,
    spans_left,
)


def test_blocks_end_at_multiples_of_their_size_and_second_runs_come_last() -> None:
    assert blocks_left(range(1, 8), 3, 5000, ()) == [
        Block(FIRST, 1, 2),
        Block(FIRST, 3, 5),
        Block(FIRST, 6, 7),
        Block(AGAIN, 1, 5),
        Block(AGAIN, 6, 7),
    ]


def test_without_second_runs_there_are_no_blocks_of_them() -> None:
    assert blocks_left(range(3), 3, 0, ()) == [Block(FIRST, 0, 2)]


def test_blocks_of_another_size_count_as_done() -> None:
    done = [Block(FIRST, 4, 4), Block(FIRST, 10, 20), Block(AGAIN, 0, 100)]
    left = blocks_left(range(12), 5, 100, done)
    assert [(block.first, block.last) for block in left] == [(0, 3), (5, 9)]


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 9), st.sets(st.integers(0, 100)))
def test_every_seed_that_is_not_done_is_in_exactly_one_block(first: int, count: int, size: int, gone: set[int]) -> None:
    seeds = range(first, first + count)
    found = list(spans_left(seeds, size, [Block(FIRST, seed, seed) for seed in gone]))
    run = [seed for start, end in found for seed in range(start, end + 1)]
    assert run == [seed for seed in seeds if seed not in gone]
    assert all(end - start < size for start, end in found)


@given(st.sampled_from([FIRST, AGAIN]), st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_a_blocks_name_says_all_of_it(run: str, first: int, last: int) -> None:
    block = Block(FIRST if run == FIRST else AGAIN, first, last)
    assert block_named(block.name) == block


def test_other_names_are_no_blocks() -> None:
    assert [block_named(name) for name in ("", "first", "first-1", "first-1-x", "third-1-2", ".first-1-2")] == [
        None
    ] * 6


def test_the_sample_follows_from_the_seeds_and_has_at_least_one_of_them() -> None:
    seeds = list(range(10_000))
    found = sampled(seeds, 100)
    assert 50 < len(found) < 150
    assert found == sampled(seeds, 100) == sorted(found)
    assert sampled(seeds[:5000], 100) == [seed for seed in found if seed < 5000]
    assert len(sampled([3, 4], 1)) == 1
    assert sampled([], 100) == []
    assert sampled(seeds, 10_000) == seeds


def test_the_code_has_one_version_as_long_as_it_stays() -> None:
    assert code_version() == code_version()
    assert len(code_version()) == 12


def test_what_differs_between_campaigns_is_reported_by_name() -> None:
    was = Campaign("aaa", "3.11", prepare="tests.planted:votes-twice")
    now = Campaign("bbb", "3.11", eligible="gentle")
    assert differences(was, now) == [
        "code version: aaa, and now bbb",
        "eligible: none, and now gentle",
        "prepare: tests.planted:votes-twice, and now none",
    ]
