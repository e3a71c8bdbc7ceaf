"""An Iceberg table that others write too, and compactions that are cut off."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from spark.tests.unit.tables.rows import SCHEMA, rows, write

from strandline_spark.errors import StrandlineError
from strandline_spark.tables import iceberg
from strandline_spark.tables.compacting import Compacted, merge_all
from strandline_spark.tables.files import DataFile
from strandline_spark.tables.iceberg import IcebergTable
from strandline_spark.tables.writing import Plan, write_rows

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")


def catalog_of(path: Path) -> dict[str, str]:
    return {"name": "strandline", "type": "sql", "uri": f"sqlite:///{path.parent}/catalog.db"}


def theirs(path: Path) -> Any:
    """The table as others have it."""
    properties = catalog_of(path)
    return load_catalog(properties.pop("name"), **properties).load_table("default.orders")


def offsets(path: Path) -> list[int]:
    found: list[int] = theirs(path).scan().to_arrow()["offset"].to_pylist()
    return sorted(found)


def compacted(path: Path) -> list[str]:
    return sorted(each.name for each in (path / "data").glob("compacted-*"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders"


@pytest.fixture
def table(path: Path) -> Iterator[IcebergTable]:
    """With three batches of three rows."""
    table = IcebergTable(str(path), application="app", schema=SCHEMA)
    for batch in range(3):
        write(table, batch, [rows(batch * 3, batch * 3 + 3)])
    yield table
    table.close()


def when_merged(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Between a compaction's work and its commit."""

    def then(*arguments: Any) -> list[DataFile]:
        merged = merge_all(*arguments)
        monkeypatch.undo()
        happens()
        return merged

    monkeypatch.setattr(iceberg, "merge_all", then)


def test_a_batch_that_two_processes_bring_at_the_same_moment_is_there_once(table: IcebergTable, path: Path) -> None:
    zombie = IcebergTable("default.orders", application="app", schema=SCHEMA, catalog=catalog_of(path))
    layout = zombie.begin(3)
    result = write_rows([rows(9, 12)], Plan(layout), 0)
    write(table, 3, [rows(9, 12)])
    zombie.commit(3, layout, result.table, result.account)
    assert zombie.account().rows == 12
    assert offsets(path) == list(range(12))


def test_a_batch_that_others_come_before_is_added_behind_them(table: IcebergTable, path: Path) -> None:
    theirs(path).append(pa.Table.from_batches([rows(100, 101)]))
    write(table, 3, [rows(9, 12)])
    assert (table.last_batch(), table.account().rows) == (3, 12)
    assert offsets(path) == [*range(12), 100]


def test_a_compaction_that_others_come_before_is_left_to_the_next_time(
    table: IcebergTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    when_merged(monkeypatch, lambda: theirs(path).append(pa.Table.from_batches([rows(100, 101)])))
    assert table.compact(None) == Compacted()
    assert compacted(path) == []
    write(table, 3, [rows(9, 12)])
    assert table.compact(None).files_before == 5
    assert offsets(path) == [*range(12), 100]


class Died(BaseException):
    """The process ends here."""


def test_what_a_death_leaves_of_a_compaction_is_deleted_by_the_next(
    table: IcebergTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert table.compact(None).files_before == 3
    write(table, 3, [rows(9, 12)])
    left = path / "data" / "compacted-0000000001"

    def dies() -> None:
        (left / "more").touch()
        raise Died

    when_merged(monkeypatch, dies)
    with pytest.raises(Died):
        table.compact(None)
    table.close()
    again = IcebergTable(str(path), application="app", schema=SCHEMA)
    assert again.compact(None).files_before == 2
    again.close()
    assert compacted(path) == ["compacted-0000000000", "compacted-0000000001"]
    assert len(list(left.iterdir())) == 1
    assert offsets(path) == list(range(12))


def test_others_that_come_before_every_try_are_named(
    table: IcebergTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iceberg, "TRIES_MAX", 1)
    theirs(path).append(pa.Table.from_batches([rows(100, 101)]))
    with pytest.raises(StrandlineError, match=r"another program changed .*orders at the same moment"):
        write(table, 3, [rows(9, 12)])
