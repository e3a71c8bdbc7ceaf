"""Delta and Iceberg tables take each batch once: their logs say which they have, whatever lies in their folders."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DateType
from spark.tests.unit.tables.rows import SCHEMA, TIMED, WIDER, rows, timed, whole, wider, write

from strandline_spark.errors import StrandlineError
from strandline_spark.schemas import rows as columns
from strandline_spark.tables import Table, open_table
from strandline_spark.tables.writing import Plan, write_rows

FORMATS = ("delta", "iceberg")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")
Opener = Callable[..., Table]


@pytest.fixture(params=FORMATS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    def opener(
        application: str = "app-1", partition_by: tuple[str, ...] = ("region",), schema: object = SCHEMA
    ) -> Table:
        if tables:
            tables.pop().close()
        path = str(tmp_path / "tables" / "orders")
        tables.append(
            open_table(request.param, path, application=application, schema=schema, partition_by=partition_by)
        )
        return tables[-1]

    tables: list[Table] = []

    opener.format = request.param
    opener.path = tmp_path / "tables" / "orders"
    return opener


def seen(opener: Opener) -> list[tuple[int, str | None]]:
    """The offsets and regions that the format's own library sees."""
    return sorted(((row["offset"], row["region"]) for row in content(opener)), key=str)


def notes(opener: Opener) -> list[str | None]:
    return [row["note"] for row in sorted(content(opener), key=lambda row: row["offset"])]


def content(opener: Opener) -> list[dict[str, Any]]:
    if opener.format == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(str(opener.path)).to_pyarrow_table()
    else:
        from pyiceberg.catalog import load_catalog

        catalog = load_catalog("strandline", type="sql", uri=f"sqlite:///{opener.path.parent}/catalog.db")
        table = catalog.load_table("default.orders").scan().to_arrow()
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def expected(end: int) -> list[tuple[int, str | None]]:
    return sorted(((offset, ("eu", "us", None)[offset % 3]) for offset in range(end)), key=str)


def test_a_batch_is_there_once_though_it_is_written_twice(opened: Opener) -> None:
    table = opened()
    write(table, 0, [rows(0, 4)], [rows(4, 6)])
    assert write(table, 0, [rows(0, 4)]).was_there
    write(table, 1, [])
    write(table, 2, [rows(6, 9)])
    again = opened()
    assert again.last_batch() == 2
    assert whole(again.account()) == (9, True, {"orders": {0: 9}})
    assert write(again, 2, [rows(6, 9)]).was_there
    assert seen(opened) == expected(9)


def test_a_try_that_did_not_come_to_its_commit_leaves_nothing(opened: Opener) -> None:
    table = opened()
    write(table, 0, [rows(0, 3)])
    write_rows([rows(3, 6)], Plan(table.begin(1)), 0)  # and its process dies
    assert seen(opened) == expected(3)
    again = opened()
    assert again.last_batch() == 0
    write(again, 1, [rows(3, 6)])
    assert seen(opened) == expected(6)
    files = [path for path in opened.path.rglob("*.parquet") if "_delta_log" not in path.parts]
    assert len(files) == 6, "the files of the first try are gone"


def test_small_files_become_few_with_the_same_rows_and_the_batches_stay_known(opened: Opener) -> None:
    table = opened()
    for batch in range(4):
        write(table, batch, [rows(batch * 3, batch * 3 + 3)])
    result = table.compact(None)
    assert (result.files_before, result.files_after) == (12, 3)
    assert seen(opened) == expected(12)
    assert opened().last_batch() == 3
    assert whole(opened().account()) == (12, True, {"orders": {0: 12}})
    write(opened(), 4, [rows(12, 15)])
    assert seen(opened) == expected(15)


def test_files_of_a_batch_are_durable_before_it_is_committed(opened: Opener, synced: Callable[[], set[str]]) -> None:
    table = opened(partition_by=("partition", "region"))
    write(table, 0, [rows(0, 2)])
    synced()
    layout = table.begin(1)
    result = write_rows([rows(2, 4)], Plan(layout), 0)
    table.commit(1, layout, result.table, result.account)
    files = [Path(layout.folder.removeprefix("file://")) / file.path for file in result.table]
    folders = {folder for file in files for folder in file.parents if folder.is_relative_to(opened.path)}
    assert len(folders) == 6
    assert {str(path) for path in (*files, *folders)} <= synced()


def test_other_columns_and_another_partitioning_are_refused(opened: Opener) -> None:
    opened()
    with pytest.raises(StrandlineError, match="amount is bigint there, not string"):
        opened(schema=columns("topic string", "partition int", "offset long", "region string", "amount string"))
    with pytest.raises(StrandlineError, match="is partitioned by region, not by nothing"):
        opened(partition_by=())


def test_applications_count_for_themselves_and_know_of_one_another(opened: Opener) -> None:
    write(opened("app-1"), 3, [rows(0, 3)])
    two = opened("app-2")
    assert two.last_batch() is None
    assert two.accounts()["app-1"].rows == 3
    write(two, 0, [rows(3, 5)])
    assert (opened("app-1").account().rows, opened("app-2").account().rows) == (3, 2)


def test_applications_whose_names_begin_alike_leave_each_others_files_alone(opened: Opener) -> None:
    write(opened("customers-eu"), 0, [rows(0, 3)])
    write(opened("customers-us"), 0, [rows(3, 6)])
    assert seen(opened) == expected(6)


def test_files_that_a_machine_without_the_folder_wrote_are_missed_and_not_committed(opened: Opener) -> None:
    table = opened()
    layout = table.begin(0)
    result = write_rows([rows(0, 3)], Plan(layout), 0)
    shutil.rmtree(layout.folder.removeprefix("file://"))  # it was on that machine's own disk
    with pytest.raises((StrandlineError, FileNotFoundError), match=r"not there|No such file"):
        table.commit(0, layout, result.table, result.account)
    assert not opened().has(0)
    assert seen(opened) == []


def test_a_column_may_come_later(opened: Opener) -> None:
    write(opened(), 0, [rows(0, 3)])
    for _ in range(2):
        opened(schema=WIDER)
    write(opened(schema=WIDER), 1, [wider(3, 6)])
    opened(schema=WIDER).compact(None)
    assert notes(opened) == [None, None, None, "n3", "n4", "n5"]
    with pytest.raises(StrandlineError, match="note string is only in the table"):
        opened()


def test_sessions_of_several_time_zones_write_one_table(opened: Opener) -> None:
    table = opened(partition_by=(), schema=TIMED)
    write(table, 0, [timed(0, "UTC")])
    write(table, 1, [timed(1, "Europe/Berlin")])
    table.compact(None)
    assert [row["at"] for row in content(opened)] == timed(0, "UTC")["at"].to_pylist() * 2


@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg"])
def test_a_time_that_only_spark_knows_is_said_to_be_none(tmp_path: Path, form: str) -> None:
    far = pa.array([1767323045000000000]).cast(pa.timestamp("us", "UTC"))  # nanoseconds, taken for microseconds
    batch = pa.RecordBatch.from_arrays([far, far.cast(pa.date32())], names=["at", "day"])
    schema = columns("at timestamp").add("day", DateType())
    path = str(tmp_path / "tables" / "t")
    for by in ["day"], []:
        table = open_table(form, path + str(len(by)), application="a", schema=schema, partition_by=by)
        if by or form == "iceberg":
            with pytest.raises(StrandlineError, match=r"outside the years 1 to 9999 \(.*day\)"):
                write(table, 0, [batch])
        else:
            assert write(table, 0, [batch]).files == 1
        table.close()


@pytest.mark.parametrize(
    ("form", "name"), [("delta", "a%20b"), ("iceberg", "a%20b"), ("iceberg", "a#1"), ("iceberg", "a?")]
)
def test_a_folder_whose_name_libraries_take_for_something_else_is_refused(tmp_path: Path, form: str, name: str) -> None:
    with pytest.raises(StrandlineError, match=f"cannot be at .*{name[1]} has another meaning"):
        open_table(form, str(tmp_path / name / "t"), application="a", schema=SCHEMA)
    assert not list(tmp_path.iterdir())


def test_odd_partition_values_come_back(opened: Opener) -> None:
    odd = ("a=b/c d%é", None, "%3D", "ü ")
    write(opened(), 0, [rows(0, 4, regions=odd)])
    write(opened(), 1, [rows(4, 8, regions=odd)])
    opened().compact(None)
    assert seen(opened) == sorted(((offset, odd[offset % 4]) for offset in range(8)), key=str)


def test_one_process_writes_at_a_time(opened: Opener) -> None:
    first = opened()
    with pytest.raises(StrandlineError, match="is being written by another process"):
        open_table(opened.format, str(opened.path), application="app-2", schema=SCHEMA, partition_by=("region",))
    assert first.last_batch() is None


class Died(BaseException):
    """The process ends here."""


def test_a_death_while_the_table_is_created_is_no_hindrance(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    from deltalake import DeltaTable
    from pyiceberg.catalog.sql import SqlCatalog

    def dies(*_: Any, **__: Any) -> None:
        left = opened.path / ("_delta_log" if opened.format == "delta" else "metadata")
        left.mkdir(exist_ok=True)
        (left / "00000-half.json").write_text("{")
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(DeltaTable, "create", dies)
        patched.setattr(SqlCatalog, "commit_table", dies)
        with pytest.raises(Died):
            opened()
    write(opened(), 0, [rows(0, 3)])
    assert seen(opened) == expected(3)
    write(opened(), 1, [rows(3, 6)])
    assert seen(opened) == expected(6)


def test_a_folder_with_other_files_is_refused(opened: Opener) -> None:
    opened.path.mkdir(parents=True)
    (opened.path / "report.csv").write_text("")
    with pytest.raises(StrandlineError, match="has files, but is no"):
        opened()
