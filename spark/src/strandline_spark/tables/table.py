"""A table that takes each batch of an application exactly once, whichever format it has.

A batch is written in three steps: `begin` says where its tasks write, they write, `commit` makes all of it the table's
in one step. A batch that the table has is passed over; what an unfinished try left is removed or in nobody's list.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from strandline.base.value import Value
from strandline_spark.errors import StrandlineError
from strandline_spark.tables.account import Account
from strandline_spark.tables.compacting import Compacted
from strandline_spark.tables.files import FILE_BYTES, DataFile, Layout, local_path
from strandline_spark.tables.schema import check_columns, column_differences, nullable
from strandline_spark.tables.writing import HIDDEN, RESULT_SCHEMA, Plan, WriteResult, read_results, writer_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class Written(Value, frozen=True):
    """What became of a batch. `was_there`: the table had it already, and nothing was written."""

    batch: int
    account: Account = Account()
    files: int = 0
    was_there: bool = False


class Table(ABC):
    def __init__(self, application: str, schema: "StructType", partition_by: Sequence[str]) -> None:
        """`application` names who counts the batches: for a stream, its query's id. Batches rise from 0."""
        self.application = application
        self.schema = nullable(schema)
        self.partition_by = tuple(partition_by)
        check_columns(self.schema, self.partition_by)

    @abstractmethod
    def last_batch(self) -> int | None:
        """The last batch of this application that the table has."""

    @abstractmethod
    def accounts(self) -> dict[str, Account]:
        """What each application that wrote to the table has done, over all its batches."""

    @abstractmethod
    def begin(self, batch: int) -> Layout:
        """Where the tasks of this batch write."""

    @abstractmethod
    def commit(self, batch: int, layout: Layout, files: Sequence[DataFile], account: Account) -> None:
        """Make the files the table's, in one step."""

    @abstractmethod
    def abandon(self, layout: Layout) -> None:
        """Forget what was written since `begin`."""

    @abstractmethod
    def compact(self, spark: "SparkSession | None", target_bytes: int = FILE_BYTES, files_min: int = 2) -> Compacted:
        """Make few files of many small ones: by tasks of Spark, or without it in this process."""

    @abstractmethod
    def read(self, spark: "SparkSession") -> "DataFrame":
        """Exactly the committed rows."""

    def close(self) -> None:  # noqa: B027  # only some formats hold something
        """Let others write."""

    def has(self, batch: int) -> bool:
        last = self.last_batch()
        return last is not None and batch <= last

    def account(self) -> Account:
        """What this application has done so far."""
        return self.accounts().get(self.application, Account())

    def write(self, rows: "DataFrame", batch: int) -> Written:
        """Append a batch, unless the table has it. Tasks write their partitions of `rows`; the driver sees no row."""
        if self.has(batch):
            return Written(batch, was_there=True)
        self.require_columns(rows.schema)
        layout = self.begin(batch)
        try:
            result = run(rows, Plan(layout))
        except BaseException:
            self.abandon(layout)
            raise
        self.commit(batch, layout, result.table, result.account)  # if it fails, nobody knows yet whether it is there
        return Written(batch, result.account, len(result.table))

    def require_columns(self, schema: "StructType") -> None:
        from pyspark.sql.types import StructType

        rows = nullable(StructType([field for field in schema if field.name not in HIDDEN]))
        differences = column_differences(self.schema, rows)
        if differences:
            raise StrandlineError(f"rows and table have different columns: {'; '.join(differences)}")


def run(rows: "DataFrame", plan: Plan) -> WriteResult:
    """One Spark job that writes all rows by a plan."""
    return read_results(row.result for row in result_rows(rows, plan).collect())


def result_rows(rows: "DataFrame", plan: Plan) -> "DataFrame":
    names = rows.columns
    plain = rows.toDF(*[f"c{number}" for number in range(len(names))])  # mapInArrow takes a.b for a field of a
    return plain.mapInArrow(writer_of(plan, names), RESULT_SCHEMA)


def not_here(path: str) -> StrandlineError:
    """A file that a task has written, and that this process does not see."""
    return StrandlineError(
        f"a task wrote {path}, and it is not there: nothing of this batch is in the table",
        "the table's folder must be the same for the driver and all of Spark's machines: mount it everywhere",
    )


def require_local(path: str, what: str) -> str:
    found = local_path(path)
    if found is None:
        raise StrandlineError(
            f"a {what} table cannot be at {path}: its commits need a file system with renames and appends",
            "mount it as a folder that all machines see, or take format iceberg or delta",
        )
    return found
