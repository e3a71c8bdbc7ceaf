"""An Iceberg table that takes each batch exactly once, without a jar.

Tasks write Parquet files below the table's location, where no reader sees them before a snapshot names them; the driver
adds them in one commit to the catalog, together with the table property that says which batch was the last. So the
property outlives the snapshots that are expired. Files of a try that did not come to its commit lie in a folder of that
batch, and are deleted when it is tried again.

Without a catalog's properties the table is one of a SQLite catalog beside it: `catalog.db` in the folder above.
"""

import os
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from strandline_spark import durable
from strandline_spark.errors import Overtaken, StrandlineError
from strandline_spark.tables.account import Account
from strandline_spark.tables.compacting import Compacted, merge_all, plan_merges
from strandline_spark.tables.files import FILE_BYTES, DataFile, Layout, batch_prefix, bins, local_path
from strandline_spark.tables.lock import Lock, has_created, may_create
from strandline_spark.tables.reading import read_files
from strandline_spark.tables.schema import arrow_schema, narrow, new_columns, repartitioned
from strandline_spark.tables.table import Table
from strandline_spark.tables.writing import out_of_years

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

BATCH = "strandline.batch."
ACCOUNT = "strandline.account."
COMPACTIONS = "strandline.compactions"  # how many there have been
NAMESPACE = "default"
TRIES_MAX = 5
RENAME = "name another folder"


class IcebergTable(Table):
    def __init__(
        self,
        name: str,
        *,
        application: str,
        schema: "StructType",
        partition_by: Sequence[str] = (),
        catalog: Mapping[str, str] | None = None,
    ) -> None:
        """`name`: `namespace.table` in a catalog whose properties are given, else a folder."""
        super().__init__(application, schema, partition_by)
        self.name = name
        self.catalog, self.identifier, location = open_catalog(name, catalog)
        raise_overtaken(self.catalog, name)
        folder = None if location is None else local_path(location)
        self.lock = None if folder is None else Lock(folder)  # elsewhere nothing is cleaned away, and nobody disturbed
        try:
            self.table = self.open_or_create(location)
            self.require_same()
        except BaseException:
            self.close()
            raise

    def open_or_create(self, location: str | None) -> Any:
        folder = None if location is None else local_path(location)
        if self.catalog.table_exists(self.identifier):
            if folder is not None:
                has_created(folder)
            return self.catalog.load_table(self.identifier)
        if folder is not None and not may_create(folder):
            raise StrandlineError(f"{folder} has files, but is not a table of its catalog", "name a new folder")
        self.catalog.create_namespace_if_not_exists(self.identifier[:-1])
        creating = self.catalog.create_table_transaction(self.identifier, arrow_schema(self.schema), location)
        with creating as transaction:
            if self.partition_by:
                with transaction.update_spec() as spec:
                    for column in self.partition_by:
                        spec.add_identity(column)
        if folder is not None:
            has_created(folder)
        return self.catalog.load_table(self.identifier)

    def require_same(self) -> None:
        from pyspark.sql.pandas.types import from_arrow_schema

        new = new_columns(self.name, from_arrow_schema(arrow_of(self.table)), self.schema)
        schema = self.table.schema()
        by = tuple(schema.find_column_name(field.source_id) for field in self.table.spec().fields)
        if by != self.partition_by:
            raise repartitioned(self.name, by, self.partition_by)
        if new:
            with self.table.update_schema() as change:
                change.union_by_name(arrow_schema(self.schema))

    def last_batch(self) -> int | None:
        found = self.table.properties.get(BATCH + self.application)
        return None if found is None else int(found)

    def accounts(self) -> dict[str, Account]:
        return {
            key.removeprefix(ACCOUNT): msgspec.json.decode(text, type=Account)
            for key, text in self.table.properties.items()
            if key.startswith(ACCOUNT)
        }

    def begin(self, batch: int) -> Layout:
        return self.layout(batch_prefix(self.application, batch))

    def layout(self, prefix: str) -> Layout:
        """Where files go that are not the table's yet. What a try that did not come to its commit left is deleted."""
        unique = "" if self.lock is not None else f"-{uuid.uuid4().hex[:8]}"
        folder = f"{self.table.location()}/data/{prefix}{unique}"
        forget(folder, self.lock is not None)
        return Layout(folder, prefix, ".parquet", self.partition_by, keeps_values=True)

    def commit(self, batch: int, layout: Layout, files: Sequence[DataFile], account: Account) -> None:
        """If another writer's commit came first, the table is read again, and only a batch that it lacks is added."""
        self.sync(layout, files)
        paths = [f"{layout.folder}/{file.path}" for file in files]
        for remaining in reversed(range(TRIES_MAX)):
            if self.has(batch):
                return
            whole = msgspec.json.encode(self.account().plus(account)).decode()
            noted = {BATCH + self.application: str(batch), ACCOUNT + self.application: whole}
            try:
                with self.table.transaction() as transaction:
                    if paths:
                        transaction.add_files(paths, {"strandline.batch": str(batch)}, check_duplicate_files=False)
                    transaction.set_properties(noted)
                return
            except OverflowError:  # the library looks at the columns' least and greatest values
                raise out_of_years(", ".join(self.schema.names)) from None
            except Overtaken:
                if not remaining:
                    raise
                time.sleep(0.1)
                self.table.refresh()

    def abandon(self, layout: Layout) -> None:
        forget(layout.folder, self.lock is not None)

    def sync(self, layout: Layout, files: Sequence[DataFile]) -> None:
        """Make the names of files durable; the tasks have done that for what is in them."""
        root, folder = local_path(self.table.location()), local_path(layout.folder)
        if root is not None and folder is not None:
            durable.sync_folders(root, [os.path.relpath(f"{folder}/{file.path}", root) for file in files])

    def data_files(self) -> list[tuple[Any, DataFile]]:
        """The catalog's view of each file and ours. Raises StrandlineError if rows have been deleted one by one."""
        by = self.partition_by
        found = []
        for task in self.table.scan().plan_files():
            if task.delete_files:
                raise StrandlineError(
                    f"{self.name} has delete files, which are not read here", "compact it elsewhere first"
                )
            file = task.file
            values = {name: None if file.partition[i] is None else str(file.partition[i]) for i, name in enumerate(by)}
            found.append((file, DataFile(file.file_path, file.record_count, file.file_size_in_bytes, values)))
        return found

    def compact(self, spark: "SparkSession | None", target_bytes: int = FILE_BYTES, files_min: int = 2) -> Compacted:
        """One commit that replaces files by others with the same rows. Old snapshots keep theirs until they expire.

        If another writer's commit came first, it is left to the next time. What a death leaves is in a folder that the
        next try deletes: its number is that of a compaction that the table has not."""
        from pyiceberg.io.pyarrow import parquet_file_to_data_file

        found = self.data_files()
        theirs = {ours.path: file for file, ours in found}
        groups = bins([ours for _, ours in found], target_bytes, files_min)
        if not groups:
            return Compacted()
        number = int(self.table.properties.get(COMPACTIONS, 0))
        layout = self.layout(f"compacted-{number:010d}")
        merged = merge_all(spark, plan_merges(groups, "", layout))
        self.sync(layout, merged)
        noted = {"strandline.compaction": "true"}
        try:
            with self.table.transaction() as transaction:
                with transaction.update_snapshot(snapshot_properties=noted).overwrite() as change:
                    for file in merged:
                        path = f"{layout.folder}/{file.path}"
                        new = parquet_file_to_data_file(self.table.io, transaction.table_metadata, path)
                        change.append_data_file(new)
                    for group in groups:
                        for ours in group:
                            change.delete_data_file(theirs[ours.path])
                transaction.set_properties({COMPACTIONS: str(number + 1)})
        except Overtaken:
            self.abandon(layout)
            self.table.refresh()
            return Compacted()
        return Compacted(sum(map(len, groups)), len(merged))

    def close(self) -> None:
        if self.lock is not None:
            self.lock.release()

    def read(self, spark: "SparkSession") -> "DataFrame":
        return read_files(spark, self.schema, [ours for _, ours in self.data_files()], "")


def open_catalog(name: str, properties: Mapping[str, str] | None) -> tuple[Any, tuple[str, ...], str | None]:
    """The catalog, the table's identifier in it, and the place of a new table."""
    from pyiceberg.catalog import load_catalog

    if properties:
        given = dict(properties)
        identifier = tuple(name.split("."))
        if len(identifier) < 2:
            raise StrandlineError(f"an Iceberg table in a catalog is named namespace.table, not {name!r}")
        return load_catalog(given.pop("name", None), **given), identifier, None
    folder = local_path(name)
    if folder is None:
        raise StrandlineError(
            f"an Iceberg table at {name} needs a catalog",
            'give one: [sink.catalog] type = "rest", uri = "…", and a table',
        )
    odd = [letter for letter in "#?%" if letter in folder]
    if odd:
        raise StrandlineError(
            f"an Iceberg table cannot be at {name}: {odd[0]} has another meaning in its paths", RENAME
        )
    warehouse, table = os.path.split(folder.rstrip("/"))
    os.makedirs(warehouse, exist_ok=True)
    uri = f"sqlite:///{warehouse}/catalog.db"
    catalog = load_catalog("strandline", type="sql", uri=uri, warehouse=f"file://{warehouse}")
    return catalog, (NAMESPACE, table), f"file://{folder}"


def raise_overtaken(catalog: Any, name: str) -> None:
    """A commit that another came before fails with `Overtaken`, which the library does not know. With its own error it
    would put ours behind that one, without asking whether that was the same batch."""
    from pyiceberg.exceptions import CommitFailedException

    commit = catalog.commit_table

    def commit_once(*arguments: Any, **more: Any) -> Any:
        try:
            return commit(*arguments, **more)
        except CommitFailedException as error:
            raise Overtaken(f"another program changed {name} at the same moment: {error}", "start it again") from error

    catalog.commit_table = commit_once


def arrow_of(table: Any) -> Any:
    """The table's columns as Arrow has them in Spark."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return narrow(schema_to_pyarrow(table.schema(), include_field_ids=False))


def forget(folder: str, is_ours: bool) -> None:
    """Delete what a try left. Where others may be trying the same, it stays: no snapshot names it."""
    local = local_path(folder) if is_ours else None
    if local is not None:
        shutil.rmtree(local, ignore_errors=True)


def read(spark: "SparkSession", name: str, catalog: Mapping[str, str] | None = None) -> "DataFrame":
    """The newest snapshot."""
    from pyspark.sql.pandas.types import from_arrow_schema

    folder = None if catalog else local_path(name)
    if folder is not None and not os.path.isdir(folder):  # to open its catalog would make one
        raise StrandlineError(f"{name} is not an Iceberg table: there is no such folder")
    found, identifier, _ = open_catalog(name, catalog)
    if not found.table_exists(identifier):
        raise StrandlineError(f"{name} is not an Iceberg table that the catalog knows")
    table = found.load_table(identifier)
    files = []
    for task in table.scan().plan_files():
        if task.delete_files:
            raise StrandlineError(f"{name} has delete files, which are not read here", "compact it elsewhere first")
        files.append(DataFile(task.file.file_path, task.file.record_count, task.file.file_size_in_bytes))
    return read_files(spark, from_arrow_schema(arrow_of(table)), files, "")
