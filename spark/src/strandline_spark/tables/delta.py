"""A Delta table that takes each batch exactly once, without a jar.

Tasks write Parquet files into the table's folder, where no reader sees them before the log names them; the driver puts
one commit into the log, with the application's transaction: (application, batch). Delta's log is the only truth.
Files of a try that did not come to its commit lie in a folder of that batch, and are deleted when it is tried again.
"""

import os
import shutil
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from strandline_spark import durable
from strandline_spark.errors import StrandlineError
from strandline_spark.tables.account import Account
from strandline_spark.tables.compacting import Compacted
from strandline_spark.tables.files import FILE_BYTES, DataFile, Layout, batch_prefix, value_text
from strandline_spark.tables.lock import Lock, has_created, may_create
from strandline_spark.tables.reading import read_files
from strandline_spark.tables.schema import arrow_schema, narrow, new_columns, repartitioned
from strandline_spark.tables.table import Table, not_here, require_local

if TYPE_CHECKING:
    from deltalake.transaction import Transaction
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

APPLICATION = "strandline.application"
ACCOUNT = "strandline.account"  # of that one's batches so far: commits had this once, and no ACCOUNTS
# In each commit's metadata, since Delta forgets old commits, and those of an application that is idle with them.
ACCOUNTS = "strandline.accounts"
DATA = "data"
RENAME = "name another folder"
VACUUM_HOURS = 168  # files that no version needs, after a compaction: readers of old versions have a week


class DeltaTable(Table):
    def __init__(self, path: str, *, application: str, schema: "StructType", partition_by: Sequence[str] = ()) -> None:
        super().__init__(application, schema, partition_by)
        self.path = require_local(path, "delta")
        if "%" in self.path:
            raise StrandlineError(f"a Delta table cannot be at {path}: % has another meaning in its paths", RENAME)
        self.lock = Lock(self.path)
        try:
            self.table = self.open_or_create()
            self.known = self.read_accounts()
            self.require_same()
        except BaseException:
            self.lock.release()
            raise

    def open_or_create(self) -> Any:
        from deltalake import DeltaTable as Delta
        from deltalake import Schema

        if Delta.is_deltatable(self.path):
            has_created(self.path)
            return Delta(self.path)
        if not may_create(self.path):
            raise StrandlineError(f"{self.path} has files, but is not a Delta table", "name a new folder")
        schema = Schema.from_arrow(arrow_schema(self.schema))
        table = Delta.create(self.path, schema, mode="ignore", partition_by=list(self.partition_by))
        has_created(self.path)
        return table

    def require_same(self) -> None:
        from deltalake import Schema
        from pyspark.sql.pandas.types import from_arrow_schema

        has = from_arrow_schema(arrow_of(self.table))
        new = new_columns(self.path, has, self.schema)
        by = tuple(self.table.metadata().partition_columns)
        if by != self.partition_by:
            raise repartitioned(self.path, by, self.partition_by)
        if new:
            fields = list(Schema.from_arrow(arrow_schema(new)).fields)
            self.table.alter.add_columns(fields, commit_properties=noting(self.known))
            self.table.update_incremental()

    def last_batch(self) -> int | None:
        found = self.table.transaction_version(self.application)
        return None if found is None else int(found)

    def accounts(self) -> dict[str, Account]:
        return self.known

    def read_accounts(self) -> dict[str, Account]:
        """From the newest commit that has them all, and those behind it that have one each."""
        found: dict[str, Account] = {}
        for commit in self.table.history():
            if ACCOUNTS in commit:
                return msgspec.json.decode(commit[ACCOUNTS], type=dict[str, Account]) | found
            if APPLICATION in commit and commit[APPLICATION] not in found:
                found[commit[APPLICATION]] = msgspec.json.decode(commit[ACCOUNT], type=Account)
        return found

    def begin(self, batch: int) -> Layout:
        relative = f"{DATA}/{batch_prefix(self.application, batch)}"
        folder = os.path.join(self.path, relative)
        shutil.rmtree(folder, ignore_errors=True)
        return Layout(folder, batch_prefix(self.application, batch), ".parquet", self.partition_by)

    def commit(self, batch: int, layout: Layout, files: Sequence[DataFile], account: Account) -> None:
        from deltalake.transaction import AddAction, Transaction

        known = {**self.known, self.application: self.account().plus(account)}
        now = int(time.time() * 1000)
        relative = os.path.relpath(layout.folder, self.path)
        for file in files:
            if not os.path.exists(os.path.join(layout.folder, file.path)):
                raise not_here(os.path.join(layout.folder, file.path))
        durable.sync_folders(self.path, [f"{relative}/{file.path}" for file in files])
        adds = [
            AddAction(f"{relative}/{file.path}", file.size_bytes, file.values, now, True, stats_of(file))
            for file in files
        ]
        self.table.create_write_transaction(
            adds,
            mode="append",
            schema=self.table.schema(),
            partition_by=list(self.partition_by),
            commit_properties=noting(known, [Transaction(self.application, batch)]),
        )
        self.table.update_incremental()
        self.known = known

    def abandon(self, layout: Layout) -> None:
        shutil.rmtree(layout.folder, ignore_errors=True)

    def compact(self, spark: "SparkSession | None", target_bytes: int = FILE_BYTES, files_min: int = 2) -> Compacted:
        """Delta's own OPTIMIZE, in this process; then what no version of the last week needs is deleted."""
        noted = noting(self.known)
        metrics = self.table.optimize.compact(target_size=target_bytes, commit_properties=noted)
        self.table.vacuum(retention_hours=VACUUM_HOURS, dry_run=False, commit_properties=noted)
        return Compacted(metrics["numFilesRemoved"], metrics["numFilesAdded"])

    def close(self) -> None:
        self.lock.release()

    def read(self, spark: "SparkSession") -> "DataFrame":
        return read(spark, self.path)


def noting(accounts: dict[str, Account], transactions: "Sequence[Transaction]" = ()) -> Any:
    """What goes into the log with a commit."""
    from deltalake.transaction import CommitProperties

    metadata = {ACCOUNTS: msgspec.json.encode(accounts).decode()}
    return CommitProperties(custom_metadata=metadata, app_transactions=list(transactions))


def stats_of(file: DataFile) -> str:
    """What the log says of a file's columns: readers skip by it what they need not open."""
    return msgspec.json.encode({"numRecords": file.rows}).decode()


def arrow_of(table: Any) -> Any:
    """The table's columns as Arrow has them in Spark."""
    import pyarrow as pa

    return narrow(pa.schema(table.schema().to_arrow()))


def read(spark: "SparkSession", path: str) -> "DataFrame":
    """The newest version. Raises StrandlineError where rows have been deleted one by one."""
    from deltalake import DeltaTable as Delta
    from pyspark.sql.pandas.types import from_arrow_schema

    root = require_local(path, "delta")
    if not Delta.is_deltatable(root):
        raise StrandlineError(f"{path} is not a Delta table")
    table = Delta(root)
    if "deletionVectors" in (table.protocol().reader_features or []):
        raise StrandlineError(f"{path} may have deletion vectors, which are not read here", "read it by deltalake")
    by = table.metadata().partition_columns
    files = []
    for row in rows_of(table.get_add_actions(flatten=True)):
        values = {name: text_of(row[f"partition.{name}"]) for name in by}
        files.append(DataFile(unquote(row["path"]), row["num_records"] or 0, row["size_bytes"], values))
    return read_files(spark, from_arrow_schema(arrow_of(table)), files, root)


def rows_of(table: Any) -> list[dict[str, Any]]:
    import pyarrow as pa

    found: list[dict[str, Any]] = pa.table(table).to_pylist()
    return found


def text_of(value: Any) -> str | None:
    return None if value is None else value_text(value)
