"""Positions in what sources of streaming queries tell, and in checkpoint folders."""

from pathlib import Path

import pytest

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.lag.positions import positions_in
from strandline_spark.jobs.lag.queries import QueryProgress, progress_of

OURS = (
    '{"topics":{"orders":{"id":"AAAAAAAAAAAAAAAAAAAAAA","partitions":'
    '{"0":{"epoch":1,"offset":10},"1":{"epoch":1,"offset":20}}}},"version":1}'
)


def test_the_forms_of_our_source_and_of_the_connector_are_understood() -> None:
    assert positions_in(OURS) == {("orders", 0): 10, ("orders", 1): 20}
    assert positions_in('{"orders":{"0":10,"1":20},"b":{"2":0}}') == {("orders", 0): 10, ("orders", 1): 20, ("b", 2): 0}


@pytest.mark.parametrize(
    "text", [None, "", "7", "null", '"x"', "[1]", "{", '{"logOffset":3}', '{"a":{"b":1}}', '{"a":{"0":true}}', "{}"]
)
def test_sources_without_partitions_have_no_positions(text: str | None) -> None:
    assert positions_in(text) == {}


def test_what_stands_for_an_end_of_a_log_is_no_position() -> None:
    assert positions_in('{"orders":{"0":-1,"1":-2,"2":5}}') == {("orders", 2): 5}


def write(folder: Path, kind: str, batch: int | str, *sources: str) -> None:
    (folder / kind).mkdir(exist_ok=True, parents=True)
    lines = ["v1", '{"batchWatermarkMs":0,"batchTimestampMs":1000}'] if kind == "offsets" else ["v1"]
    (folder / kind / str(batch)).write_text("\n".join([*lines, *sources]))


def test_a_querys_position_is_behind_its_last_committed_batch(tmp_path: Path) -> None:
    for batch in range(3):
        write(tmp_path, "offsets", batch, f'{{"t":{{"0":{10 * batch}}}}}', '{"logOffset":3}', OURS)
    for batch in range(2):
        write(tmp_path, "commits", batch)
    (tmp_path / "offsets" / ".3.abc.tmp").write_text("v1")
    (tmp_path / "offsets" / ".2.crc").write_bytes(b"crc")
    progress = progress_of(str(tmp_path))
    assert progress.done == {("t", 0): 10, ("orders", 0): 10, ("orders", 1): 20}
    assert progress.batch == 1
    assert progress_of(tmp_path.as_uri()) == progress


def test_a_query_whose_first_batch_is_not_done_has_no_position(tmp_path: Path) -> None:
    write(tmp_path, "offsets", 0, '{"t":{"0":10}}')
    assert progress_of(str(tmp_path)) == QueryProgress({}, -1)


def test_a_folder_of_something_else_is_named(tmp_path: Path) -> None:
    with pytest.raises(StrandlineError, match="not a checkpoint of a streaming query"):
        progress_of(str(tmp_path))
    with pytest.raises(StrandlineError, match="only checkpoints in mounted folders"):
        progress_of("s3a://bucket/checkpoint")
    write(tmp_path, "offsets", 0)
    (tmp_path / "offsets" / "0").write_bytes(b"\xff something else")
    write(tmp_path, "commits", 0)
    with pytest.raises(StrandlineError, match="not a file of Spark's offset log"):
        progress_of(str(tmp_path))
