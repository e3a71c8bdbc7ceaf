"""A folder of Parquet files that takes each batch exactly once.

Readers that know nothing of it (Spark, pyarrow, duckdb) see the exact rows whenever no batch is under way: tasks write
where they do not look, and files come to their places by renames. While renames are under way, and after a crash among
them until the table is opened again, `read` has the exact rows: it goes by the manifest.
"""

import contextlib
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from strandline_spark import durable
from strandline_spark.errors import StrandlineError
from strandline_spark.tables.account import Account
from strandline_spark.tables.compacting import Compacted, merge_all, plan_merges
from strandline_spark.tables.files import FILE_BYTES, STAGED, DataFile, Layout, batch_prefix, bins
from strandline_spark.tables.lock import Lock
from strandline_spark.tables.manifest import (
    FOLDER,
    NAME,
    Begun,
    Committed,
    Created,
    Manifest,
    Replaced,
    Retracted,
    Settled,
    State,
    Undone,
    read_state,
)
from strandline_spark.tables.schema import new_columns, quoted, repartitioned
from strandline_spark.tables.table import Table, not_here, require_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

STAGING = "staging"
GLOB = re.compile(r"([\\{}\[\]*?])")  # what Hadoop takes for a pattern in a path
LINES_MAX = 10_000  # of a manifest, before it is written anew after a batch


class ParquetTable(Table):
    """Opened for writing by one process, until `close`. Opening finishes or takes back what a crash left half done."""

    def __init__(self, path: str, *, application: str, schema: "StructType", partition_by: Sequence[str] = ()) -> None:
        super().__init__(application, schema, partition_by)
        self.path = require_local(path, "parquet")
        refuse_strangers(self.path)
        self.own = os.path.join(self.path, FOLDER)
        with contextlib.ExitStack() as held:
            self.lock = Lock(self.path)
            held.callback(self.lock.release)
            self.manifest = Manifest(os.path.join(self.own, NAME))
            held.callback(self.manifest.close)
            self.recover()
            self.require_same()
            self.held = held.pop_all()

    @property
    def state(self) -> State:
        return self.manifest.state

    def require_same(self) -> None:
        from pyspark.sql.types import StructType

        created = self.state.created
        if created is None:
            self.manifest.append(Created(self.schema.json(), self.partition_by))
            return
        has = StructType.fromJson(json.loads(created.columns))
        new = new_columns(self.path, has, self.schema)
        if created.partition_by != self.partition_by:
            raise repartitioned(self.path, created.partition_by, self.partition_by)
        if new:
            self.manifest.append(Created(StructType([*has, *new]).json(), self.partition_by))

    def recover(self) -> None:
        """Take back a batch that was begun and not committed, and finish a compaction."""
        begun = self.state.begun
        if begun is not None:
            for path in begun.files:
                remove(os.path.join(self.path, path))
            self.manifest.append(Undone(begun.application, begun.batch))
        if self.state.replaced is not None:
            self.finish_replacement(self.state.replaced)
        shutil.rmtree(os.path.join(self.own, STAGING), ignore_errors=True)

    # what a batch goes through

    def last_batch(self) -> int | None:
        return self.state.batches.get(self.application)

    def accounts(self) -> dict[str, Account]:
        return self.state.accounts

    def begin(self, batch: int) -> Layout:
        if self.state.begun is not None or self.state.replaced is not None:  # it failed, and this process goes on
            self.recover()
        folder = os.path.join(self.own, STAGING, f"{batch:010d}-{uuid.uuid4().hex[:8]}")
        os.makedirs(folder)
        return Layout(folder, batch_prefix(self.application, batch), f".parquet{STAGED}", self.partition_by)

    def commit(self, batch: int, layout: Layout, files: Sequence[DataFile], account: Account) -> None:
        final = [final_file(file) for file in files]
        self.manifest.append(Begun(self.application, batch, [file.path for file in final]))
        self.place(layout.folder, final)
        self.manifest.append(Committed(self.application, batch, int(time.time() * 1000), final, account))
        shutil.rmtree(layout.folder, ignore_errors=True)
        if self.state.lines > LINES_MAX:
            self.manifest.fold()

    def abandon(self, layout: Layout) -> None:
        shutil.rmtree(layout.folder, ignore_errors=True)

    def take_back(self, batch: int) -> None:
        """Remove the last batch again, since a table that it belongs to has not taken it. Its files are as written."""
        prefix = batch_prefix(self.application, batch)
        files = [path for path in self.state.files if os.path.basename(path).startswith(prefix)]
        self.manifest.append(Retracted(self.application, batch, files))
        self.recover()

    def place(self, folder: str, files: Sequence[DataFile]) -> None:
        """Rename staged files to where readers look. Done again, it does what was not done."""
        for file in files:
            target = os.path.join(self.path, file.path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            try:
                os.rename(os.path.join(folder, file.path + STAGED), target)
            except FileNotFoundError:
                if not os.path.exists(target):
                    raise not_here(target) from None
        durable.sync_folders(self.path, [file.path for file in files])

    # compaction

    def compact(self, spark: "SparkSession | None", target_bytes: int = FILE_BYTES, files_min: int = 2) -> Compacted:
        """Many small files become few, without a moment in which `read` has not exactly the same rows."""
        groups = bins(list(self.state.files.values()), target_bytes, files_min)
        if not groups:
            return Compacted()
        folder = os.path.join(self.own, STAGING, f"compaction-{uuid.uuid4().hex[:8]}")
        layout = Layout(folder, f"compacted-{uuid.uuid4().hex[:12]}", f".parquet{STAGED}", self.partition_by)
        merged = [final_file(file) for file in merge_all(spark, plan_merges(groups, self.path, layout))]
        old = [file.path for group in groups for file in group]
        replaced = Replaced(os.path.relpath(folder, self.path), old, merged)
        durable.sync_folders(self.path, [f"{replaced.staged}/{file.path}" for file in merged])
        self.manifest.append(replaced)
        self.finish_replacement(replaced)
        self.manifest.fold()
        return Compacted(len(old), len(merged))

    def finish_replacement(self, replaced: Replaced) -> None:
        self.place(os.path.join(self.path, replaced.staged), replaced.new)
        for path in replaced.old:
            remove(os.path.join(self.path, path))
        self.manifest.append(Settled())
        shutil.rmtree(os.path.join(self.path, replaced.staged), ignore_errors=True)

    def read(self, spark: "SparkSession") -> "DataFrame":
        return read(spark, self.path)

    def close(self) -> None:
        self.held.close()


def read(spark: "SparkSession", path: str) -> "DataFrame":
    """Exactly the committed rows, whatever is under way. One row per row; the columns that the table was made with."""
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    root = require_local(path, "parquet")
    state, _ = read_state(os.path.join(root, FOLDER, NAME))
    if state.created is None:
        raise StrandlineError(f"{path} is not a table that Strandline writes: it has no {FOLDER}/{NAME}")
    schema = StructType.fromJson(json.loads(state.created.columns))
    frames = [
        spark.read.schema(schema).option("basePath", base).parquet(*[GLOB.sub(r"\\\1", file) for file in files])
        for base, files in places(root, state).items()
    ]
    if not frames:
        return spark.createDataFrame([], schema)
    return reduce(DataFrame.unionByName, frames).select(*[quoted(name) for name in schema.names])


def places(root: str, state: State) -> dict[str, list[str]]:
    """Where each file is now, by the folder that its partition values begin below."""
    found: dict[str, list[str]] = {}
    for path in state.files:
        final, staged = os.path.join(root, path), None
        if state.replaced is not None and not os.path.exists(final):  # a compaction was cut off before its renames
            staged = os.path.join(root, state.replaced.staged)
        base, file = (root, final) if staged is None else (staged, os.path.join(staged, path + STAGED))
        found.setdefault(base, []).append(file)
    return found


def final_file(file: DataFile) -> DataFile:
    return DataFile(file.path.removesuffix(STAGED), file.rows, file.size_bytes, file.values)


def remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def refuse_strangers(path: str) -> None:
    if os.path.isfile(path):
        raise StrandlineError(f"{path} is a file, not a folder for a table")
    if not os.path.isdir(path) or os.path.exists(os.path.join(path, FOLDER, NAME)):
        return
    if any(name != FOLDER for name in os.listdir(path)):  # in which a checkpoint or a lock may be already
        raise StrandlineError(
            f"{path} has files, but no {FOLDER}/{NAME}: another program wrote them, and rows could not be told apart",
            "name a new folder",
        )
