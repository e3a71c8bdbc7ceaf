"""A Delta table knows what each application has brought, also when the log has forgotten the commits of one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from deltalake import CommitProperties, Transaction
from deltalake import DeltaTable as Delta
from pyspark.sql.types import StructType
from spark.tests.unit.tables.rows import SCHEMA, WIDER, rows, write

from strandline_spark.tables.account import Account, Span
from strandline_spark.tables.delta import ACCOUNT, APPLICATION, DeltaTable

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table whose log is kept for a second."""
    with opened(tmp_path / "t", "first"):
        Delta(str(tmp_path / "t")).alter.set_table_properties({"delta.logRetentionDuration": "interval 1 second"})
    return tmp_path / "t"


@contextmanager
def opened(path: Path, application: str, schema: StructType = SCHEMA) -> Iterator[DeltaTable]:
    table = DeltaTable(str(path), application=application, schema=schema)
    try:
        yield table
    finally:
        table.close()


def rows_of(table: DeltaTable) -> dict[str, int]:
    return {name: account.rows for name, account in table.accounts().items()}


def forget_old_commits(path: Path) -> None:
    """What Delta does with the log of a month: a checkpoint has the table, and the commits before it are removed."""
    table = Delta(str(path))
    table.create_checkpoint()
    log = path / "_delta_log"
    for file in log.iterdir():
        os.utime(file, (0, 0))
    table.cleanup_metadata()
    assert [file.name for file in log.glob("*.json")] == [f"{table.version():020}.json"]


def test_the_commits_of_one_application_are_forgotten_while_another_goes_on(path: Path) -> None:
    with opened(path, "idle") as table:
        write(table, 0, [rows(0, 3)])
    with opened(path, "busy") as table:
        for batch in range(3):
            write(table, batch, [rows(batch + 3, batch + 4)])
    forget_old_commits(path)
    with opened(path, "busy") as table:
        write(table, 3, [rows(6, 7)])
    forget_old_commits(path)
    with opened(path, "third") as table:
        assert rows_of(table) == {"idle": 3, "busy": 4}
        assert table.accounts()["idle"].spans == {"orders": {0: Span(0, 3, 3)}}


def test_a_compaction_or_a_new_column_is_all_that_the_log_still_has(path: Path) -> None:
    with opened(path, "idle") as table:
        write(table, 0, [rows(0, 3)])
        write(table, 1, [rows(3, 6)])
        assert table.compact(None).files_after == 1
    forget_old_commits(path)
    with opened(path, "idle", WIDER) as table:
        assert rows_of(table) == {"idle": 6}
    forget_old_commits(path)
    with opened(path, "third", WIDER) as table:
        assert rows_of(table) == {"idle": 6}


def test_commits_that_have_one_application_each_are_read_too(path: Path) -> None:
    """As they were written once: of each application the newest counts."""
    for version, (application, count) in enumerate([("old", 3), ("older", 5), ("old", 7)]):
        metadata = {APPLICATION: application, ACCOUNT: msgspec.json.encode(Account(rows=count)).decode()}
        Delta(str(path)).create_write_transaction(
            [],
            mode="append",
            schema=Delta(str(path)).schema(),
            partition_by=[],
            commit_properties=CommitProperties(
                custom_metadata=metadata, app_transactions=[Transaction(application, version)]
            ),
        )
    with opened(path, "new") as table:
        assert rows_of(table) == {"old": 7, "older": 5}
        write(table, 0, [rows(0, 3)])
    with opened(path, "new") as table:
        assert rows_of(table) == {"old": 7, "older": 5, "new": 3}
