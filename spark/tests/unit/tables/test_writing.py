"""A task's rows become files, by partition, and each is counted and goes where its hidden columns say."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark.tests.unit.tables.rows import rows

from strandline_spark.errors import StrandlineError
from strandline_spark.tables import writing
from strandline_spark.tables.files import NULL, DataFile, Layout, bins, hive_folder, value_text
from strandline_spark.tables.writing import FAILED, QUARANTINE, Plan, write_rows

QUARANTINE_COLUMNS = pa.struct([("value", pa.binary()), ("rule", pa.string())])


def layout(folder: Path, by: tuple[str, ...] = (), **more: Any) -> Layout:
    return Layout(str(folder), "p", ".parquet", by, **more)


def content(folder: Path, files: tuple[DataFile, ...]) -> list[dict[str, Any]]:
    return [row for file in files for row in pq.ParquetFile(folder / file.path).read().to_pylist()]


def hive_values(path: str) -> dict[str, str | None]:
    """The partition values that readers find in a path."""
    pairs = [part.partition("=") for part in path.split("/")[:-1]]
    return {unquote(name): None if text == NULL else unquote(text) for name, equals, text in pairs if equals}


def hidden(batch: pa.RecordBatch, failed: list[int], answer: list[Any]) -> pa.RecordBatch:
    columns = {name: batch.column(name) for name in batch.schema.names}
    columns |= {FAILED: pa.array(failed, pa.int64()), QUARANTINE: pa.array(answer, QUARANTINE_COLUMNS)}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def test_each_row_goes_where_its_hidden_columns_say_and_is_counted(tmp_path: Path) -> None:
    bad = {"value": b"x", "rule": "json"}
    batch = hidden(rows(0, 5), [0, 1, 2, 3, 0], [None, None, None, None, bad])
    plan = Plan(layout(tmp_path / "t"), layout(tmp_path / "q"), dropped=2, expectations=("warned", "dropped"))
    result = write_rows([batch], plan, 0)
    assert [row["offset"] for row in content(tmp_path / "t", result.table)] == [0, 1]
    assert content(tmp_path / "q", result.quarantine) == [
        {"topic": "orders", "partition": 0, "offset": 4, "value": b"x", "rule": "json"}
    ]
    account = result.account
    assert (account.rows, account.quarantined, account.dropped) == (2, 1, 2)
    assert account.failed == {"warned": 2, "dropped": 2}
    assert account.is_dense
    assert account.ends == {"orders": {0: 5}}


def test_files_are_split_by_partition_and_say_their_values(tmp_path: Path) -> None:
    result = write_rows([rows(0, 7), rows(7, 9)], Plan(layout(tmp_path, ("region", "partition"))), 3)
    assert {tuple(file.values.items()): file.rows for file in result.table} == {
        (("region", "eu"), ("partition", "0")): 3,
        (("region", "us"), ("partition", "0")): 3,
        (("region", None), ("partition", "0")): 3,
    }
    assert all(file.size_bytes == (tmp_path / file.path).stat().st_size for file in result.table)
    assert list(content(tmp_path, result.table)[0]) == ["topic", "offset", "amount"]
    assert [hive_values(file.path) for file in result.table] == [file.values for file in result.table]


def test_files_may_keep_the_columns_that_they_are_split_by(tmp_path: Path) -> None:
    result = write_rows([rows(0, 3, regions=("", None))], Plan(layout(tmp_path, ("region",), keeps_values=True)), 0)
    assert [[row["region"] for row in content(tmp_path, (file,))] for file in result.table] == [["", ""], [None]]


def test_a_file_that_is_large_enough_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "GROUP_BYTES_MAX", 100)
    result = write_rows([rows(n, n + 10) for n in range(0, 50, 10)], Plan(layout(tmp_path, file_bytes=600)), 0)
    assert len(result.table) > 1
    assert [row["offset"] for row in content(tmp_path, result.table)] == list(range(50))


def test_few_files_are_open_and_few_rows_wait_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "OPEN_FILES_MAX", 2)
    monkeypatch.setattr(writing, "WAITING_BYTES_MAX", 200)
    names = tuple(f"r{number}" for number in range(5))
    result = write_rows(
        [rows(n, n + 5, regions=names) for n in range(0, 20, 5)], Plan(layout(tmp_path, ("region",))), 0
    )
    assert sorted(row["offset"] for row in content(tmp_path, result.table)) == list(range(20))
    assert len({file.path for file in result.table}) == len(result.table) == 20


def test_rows_that_sql_made_of_one_record_count_as_one(tmp_path: Path) -> None:
    first = pa.concat_batches([rows(0, 2), rows(1, 2)])  # record 1 became three rows, over two batches
    result = write_rows([first, rows(1, 2), rows(2, 3)], Plan(layout(tmp_path)), 0)
    assert result.account.rows == 5
    assert result.account.is_dense


def test_rows_without_offsets_are_written_and_have_no_spans(tmp_path: Path) -> None:
    result = write_rows([pa.RecordBatch.from_pydict({"a": [1, 2]})], Plan(layout(tmp_path)), 0)
    assert (result.account.rows, result.account.spans) == (2, {})


def test_no_rows_are_no_files(tmp_path: Path) -> None:
    assert write_rows([rows(0, 0)], Plan(layout(tmp_path)), 0).table == ()
    assert list(tmp_path.iterdir()) == []


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8), st.none() | st.text(min_size=1, max_size=8), min_size=1, max_size=3
    )
)
def test_partition_values_come_back_from_paths(values: dict[str, str | None]) -> None:
    folder = hive_folder(values)
    assert folder.count("/") == len(values) - 1
    assert hive_values(f"{folder}/file") == values


def test_a_value_that_has_no_place_in_a_path_is_refused() -> None:
    assert [value_text(value) for value in (None, "", True, 7, "x")] == [None, None, "true", "7", "x"]
    with pytest.raises(StrandlineError, match=r"cannot be partitioned by 1\.5"):
        value_text(1.5)


def test_small_files_of_one_partition_are_put_together_and_others_left() -> None:
    def file(name: str, size: int, region: str = "eu") -> DataFile:
        return DataFile(name, 1, size, {"region": region})

    files = [
        file("a", 40),
        file("b", 40),
        file("c", 40),
        file("d", 90),
        file("e", 10, "us"),
        file("f", 1),
        file("g", 1),
    ]
    assert [[each.path for each in group] for group in bins(files, 100)] == [["a", "b"], ["c", "f", "g"]]
    assert [[each.path for each in group] for group in bins(files, 100, files_min=3)] == [["c", "f", "g"]]
