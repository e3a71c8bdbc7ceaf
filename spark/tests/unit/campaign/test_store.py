"""A campaign's folder: blocks are there whole or not at all, and are of one campaign."""

from pathlib import Path

import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from strandline_spark import durable
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.simulate import store
from strandline_spark.jobs.simulate.definition import AGAIN, FIRST, Block, Campaign
from strandline_spark.jobs.simulate.seed_row import SeedRow
from strandline_spark.schemas import SEED

CAMPAIGN = Campaign("code", "3.11")
GOOD = SeedRow(
    7, "first", "ok", digest="d1", ms=3, code_version="code", faults={"kill": 2}, seen={"leads": 5, "isr": 1}
)
BAD = SeedRow(8, "first", "failed", "a law", "why", "strandline sim --seed 8")


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    block = Block(FIRST, 7, 8)
    store.write_rows(tmp_path, block, [GOOD, BAD])
    assert list(store.rows_in(tmp_path, block)) == [GOOD, BAD]
    assert store.counts_of(tmp_path, block) == (2, 1)


def test_a_block_none_of_whose_seeds_counts_is_done_all_the_same(tmp_path: Path) -> None:
    block = Block(AGAIN, 1, 9)
    store.write_rows(tmp_path, block, [])
    assert store.done(tmp_path) == [block]
    assert list(store.rows_in(tmp_path, block)) == []


def test_a_block_takes_the_place_of_another_at_once_and_is_never_half_there(tmp_path: Path) -> None:
    block = Block(FIRST, 7, 8)
    store.write_rows(tmp_path, block, [GOOD])
    before = tmp_path / "before"
    before.hardlink_to(store.path_of(tmp_path, block))
    content = before.read_bytes()
    store.write_rows(tmp_path, block, [GOOD, BAD])
    assert before.read_bytes() == content
    assert [path.name for path in (tmp_path / "blocks").iterdir()] == ["first-7-8.parquet"]


def test_spark_reads_the_same_columns() -> None:
    assert to_arrow_schema(SEED).names == store.SEED.names == list(SeedRow.__struct_fields__)
    assert [field.type for field in to_arrow_schema(SEED)] == [field.type for field in store.SEED]


def test_what_a_killed_run_left_unfinished_is_no_block_and_is_removed(tmp_path: Path) -> None:
    with store.opened(tmp_path, CAMPAIGN):
        store.write_rows(tmp_path, Block(FIRST, 1, 2), [GOOD])
    left = tmp_path / "blocks" / f".first-3-4.parquet.host-1{durable.UNFINISHED}"
    left.write_bytes(b"PAR1")
    assert store.done(tmp_path) == [Block(FIRST, 1, 2)]
    with store.opened(tmp_path, CAMPAIGN):
        assert not left.exists()
        assert store.done(tmp_path) == [Block(FIRST, 1, 2)]


@pytest.mark.parametrize("other", [Campaign("newer", "3.11"), Campaign("code", "3.11", prepare="x"), Campaign("code")])
def test_another_campaign_in_the_same_folder_is_refused_and_nothing_changes(tmp_path: Path, other: Campaign) -> None:
    with store.opened(tmp_path, CAMPAIGN):
        pass
    with pytest.raises(StrandlineError, match="a campaign of another kind"), store.opened(tmp_path, other):
        raise AssertionError("it was let in")
    assert store.definition(tmp_path) == CAMPAIGN


def test_two_processes_do_not_run_one_campaign(tmp_path: Path) -> None:
    with (
        store.opened(tmp_path, CAMPAIGN),
        pytest.raises(StrandlineError, match="another process runs"),
        store.opened(tmp_path, CAMPAIGN),
    ):
        raise AssertionError("it was let in")
    with store.opened(tmp_path, CAMPAIGN):
        pass


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StrandlineError, match="file cannot be used"), store.opened(tmp_path / "file", CAMPAIGN):
        pass


def test_a_definition_that_says_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "campaign.json").write_text("{")
    with pytest.raises(StrandlineError, match=r"campaign\.json does not describe"), store.opened(tmp_path, CAMPAIGN):
        pass


def test_a_block_that_cannot_be_read_is_named_with_what_to_do(tmp_path: Path) -> None:
    block = Block(FIRST, 1, 2)
    store.write_rows(tmp_path, block, [GOOD])
    store.path_of(tmp_path, block).write_bytes(b"PAR1 and nothing")
    with pytest.raises(StrandlineError, match=r"first-1-2\.parquet cannot be read") as raised:
        list(store.rows_in(tmp_path, block))
    assert raised.value.advice == "remove it to run its seeds again"
