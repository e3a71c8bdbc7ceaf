"""What a task does with its rows: into Parquet files, split by partition, each row counted.

The task names its files itself, with a random part, and names them in its one row of result. So the files of a task
that failed, was repeated, or ran twice are in nobody's list, and no committer has to move folders about.

Memory is bounded: rows wait in Arrow until a row group is full, and the largest group is written when all together are
too many. Rows with hidden columns are routed by them: to the table, to quarantine, or nowhere but into the numbers.
"""

import contextlib
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet as pq

from strandline.base.value import Value
from strandline_spark import durable
from strandline_spark.errors import StrandlineError
from strandline_spark.tables.account import Account, Span, Spans
from strandline_spark.tables.files import DataFile, Layout, hive_folder, local_path, value_text

FAILED = "__strandline_failed"  # bit i: expectation i was not met
QUARANTINE = "__strandline_quarantine"  # null, or what the quarantine table says of the row
HIDDEN = (FAILED, QUARANTINE)
OFFSETS = ("topic", "partition", "offset")

GROUP_BYTES_MAX = 64 << 20  # of Arrow, before a row group is written
READ_BYTES = 1 << 20  # of a column at a time
WAITING_BYTES_MAX = 192 << 20  # of all groups of a task together
OPEN_FILES_MAX = 64


class Plan(Value, frozen=True):
    """What all tasks of one batch need to know."""

    table: Layout
    quarantine: Layout | None = None
    dropped: int = 0  # bits of the expectations whose rows no table takes
    expectations: tuple[str, ...] = ()


class WriteResult(Value, frozen=True):
    """The result of one task: its files, and what it counted."""

    table: tuple[DataFile, ...] = ()
    quarantine: tuple[DataFile, ...] = ()
    account: Account = Account()


class Sink(Protocol):
    """A file that is being written, and its size so far."""

    def tell(self) -> int: ...
    def close(self) -> None: ...


def write_rows(batches: Iterable[pa.RecordBatch], plan: Plan, task: int) -> WriteResult:
    """Write all rows of a task. The batches' columns are the table's, in any order, and perhaps the hidden ones."""
    table = Files(plan.table, task)
    aside = None if plan.quarantine is None else Files(plan.quarantine, task)
    count = Count(plan.expectations)
    for batch in batches:
        if not batch.num_rows:
            continue
        count.take(batch)
        kept, quarantined = route(batch, plan.dropped)
        count.rows += kept.num_rows
        table.add(kept)
        if quarantined is not None and quarantined.num_rows:
            assert aside is not None, "rows for a quarantine that nobody gave"
            count.quarantined += quarantined.num_rows
            aside.add(quarantined)
    return WriteResult(tuple(table.close()), () if aside is None else tuple(aside.close()), count.account())


def route(batch: pa.RecordBatch, dropped: int) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """The rows for the table, without hidden columns; and those for quarantine, in its columns."""
    names = batch.schema.names
    table = batch.select([name for name in names if name not in HIDDEN])
    keep = None
    aside = None
    if QUARANTINE in names:
        column = batch.column(QUARANTINE)
        if column.null_count < len(column):
            keep = column.is_null()
            aside = quarantine_rows(batch.filter(column.is_valid()))
    if dropped and FAILED in names:
        lasting = pc.equal(pc.bit_wise_and(pc.fill_null(batch.column(FAILED), 0), dropped), 0)
        keep = lasting if keep is None else pc.and_(keep, lasting)
    return (table if keep is None else table.filter(keep)), aside


def quarantine_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    column = batch.column(QUARANTINE)
    result = dict(zip([field.name for field in column.type], column.flatten(), strict=True))
    columns = {name: batch.column(name) for name in OFFSETS} | result
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


class Count:
    """The numbers of one task. Rows that were made of one record lie side by side, and count as one record."""

    def __init__(self, expectations: tuple[str, ...]) -> None:
        self.expectations = expectations
        self.failed = dict.fromkeys(expectations, 0)
        self.spans: Spans = {}
        self.lasts: dict[tuple[str, int], int] = {}
        self.seen = self.rows = self.quarantined = 0

    def take(self, batch: pa.RecordBatch) -> None:
        self.seen += batch.num_rows
        names = batch.schema.names
        if FAILED in names:
            self.take_failed(batch.column(FAILED))
        if any(name not in names for name in OFFSETS):
            return
        table = pa.table({name: batch.column(name) for name in OFFSETS})
        wanted = [("offset", "min"), ("offset", "max"), ("offset", "count_distinct")]
        for row in table.group_by(["topic", "partition"]).aggregate(wanted).to_pylist():
            self.take_span(
                row["topic"], row["partition"], row["offset_min"], row["offset_max"], row["offset_count_distinct"]
            )

    def take_span(self, topic: str, partition: int, first: int, last: int, records: int) -> None:
        again = self.lasts.get((topic, partition)) == first
        self.lasts[topic, partition] = last
        span = Span(first, last + 1, records - again)
        partitions = self.spans.setdefault(topic, {})
        partitions[partition] = partitions[partition].plus(span) if partition in partitions else span

    def take_failed(self, column: Any) -> None:
        for row in pc.value_counts(column).to_pylist():
            for bit, name in enumerate(self.expectations):
                if row["values"] and row["values"] >> bit & 1:
                    self.failed[name] += row["counts"]

    def account(self) -> Account:
        return Account(
            rows=self.rows,
            quarantined=self.quarantined,
            dropped=self.seen - self.rows - self.quarantined,
            failed=self.failed,
            spans=self.spans,
        )


class Files:
    """The files of one layout that one task writes, one open per partition."""

    def __init__(self, layout: Layout, task: int) -> None:
        self.layout = layout
        self.name = f"{layout.prefix}-{task:05d}-{uuid.uuid4().hex[:12]}"
        self.open: dict[tuple[Any, ...], OpenFile] = {}
        self.waiting = 0
        self.done: list[DataFile] = []
        self.number = 0

    def add(self, batch: pa.RecordBatch) -> None:
        for values, part in split(batch, self.layout.partition_by):
            texts = tuple(value_text(value) for value in values)
            place: tuple[Any, ...] = values
            if not self.layout.keeps_values:
                part = part.select([name for name in part.schema.names if name not in self.layout.partition_by])
                place = texts
            file = self.open.get(place) or self.begin(place, texts, part.schema)
            self.waiting += file.add(part)
            if file.waiting >= GROUP_BYTES_MAX:
                self.write(file)
            if file.size_bytes() >= self.layout.file_bytes:
                self.end(place)
            while self.waiting > WAITING_BYTES_MAX:
                self.write(max(self.open.values(), key=lambda each: each.waiting))

    def begin(self, place: tuple[Any, ...], texts: tuple[str | None, ...], schema: pa.Schema) -> "OpenFile":
        if len(self.open) >= OPEN_FILES_MAX:
            self.end(next(iter(self.open)))  # the one that has been open longest
        values = dict(zip(self.layout.partition_by, texts, strict=True))
        self.number += 1
        name = f"{self.name}-{self.number:03d}{self.layout.suffix}"
        relative = "/".join(part for part in (hive_folder(values), name) if part)
        self.open[place] = OpenFile(self.layout.folder, relative, values, schema)
        return self.open[place]

    def write(self, file: "OpenFile") -> None:
        self.waiting -= file.write()

    def end(self, place: tuple[Any, ...]) -> None:
        file = self.open.pop(place)
        self.write(file)
        self.done.append(file.close())

    def close(self) -> list[DataFile]:
        for place in list(self.open):
            self.end(place)
        return self.done


class OpenFile:
    """One Parquet file while rows wait for it."""

    def __init__(self, folder: str, relative: str, values: dict[str, str | None], schema: pa.Schema) -> None:
        self.path = relative
        self.values = values
        self.rows = self.waiting = 0
        self.batches: list[pa.RecordBatch] = []
        self.local, self.sink = create_file(f"{folder.rstrip('/')}/{relative}")
        self.schema = in_utc(schema)
        self.writer = pq.ParquetWriter(self.sink, self.schema, compression="zstd")

    def add(self, batch: pa.RecordBatch) -> int:
        """How many bytes more wait now."""
        size = batch.nbytes
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.waiting += size
        return int(size)

    def size_bytes(self) -> int:
        return self.sink.tell()

    def write(self) -> int:
        """Write what waits as one row group; how many bytes wait no longer."""
        if self.batches:
            self.writer.write_table(pa.Table.from_batches(self.batches).cast(self.schema), row_group_size=1 << 30)
        written, self.waiting, self.batches = self.waiting, 0, []
        return written

    def close(self) -> DataFile:
        self.writer.close()
        size = self.sink.tell()
        self.sink.close()
        if self.local is not None:
            durable.sync(self.local)
        return DataFile(self.path, self.rows, size, self.values)


def split(batch: pa.RecordBatch, partition_by: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """The batch by the values of some columns, in the order in which they come up."""
    if not partition_by or not batch.num_rows:
        yield from [((), batch)] if batch.num_rows else []
        return
    keys = pa.table({name: batch.column(name) for name in partition_by}).group_by(list(partition_by)).aggregate([])
    try:
        groups = [tuple(row[name] for name in partition_by) for row in keys.to_pylist()]
    except OverflowError:
        raise out_of_years(", ".join(partition_by)) from None
    if len(groups) == 1:
        yield groups[0], batch
        return
    for group in groups:
        chosen = None
        for name, value in zip(partition_by, group, strict=True):
            column = batch.column(name)
            mask = column.is_null() if value is None else pc.equal(column, pa.scalar(value, column.type))
            chosen = mask if chosen is None else pc.and_kleene(chosen, mask)
        yield group, batch.filter(chosen)


def out_of_years(names: str) -> StrandlineError:
    """A row with a time that Spark has, and that other readers of a table have not."""
    return StrandlineError(
        f"a date or time of a row is outside the years 1 to 9999 ({names})",
        "set such rows aside: an expectation year(timestamp) BETWEEN 1 AND 9999",
    )


def in_utc(schema: pa.Schema) -> pa.Schema:
    """Without metadata, with all times in UTC: Spark names the session's time zone, which is not part of a table."""

    def plain(kind: Any) -> Any:
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            return pa.timestamp(kind.unit, "UTC")
        if pa.types.is_list(kind):
            return pa.list_(kind.value_field.with_type(plain(kind.value_type)))
        if pa.types.is_map(kind):
            return pa.map_(plain(kind.key_type), kind.item_field.with_type(plain(kind.item_type)))
        if pa.types.is_struct(kind):
            return pa.struct([field.with_type(plain(field.type)) for field in kind])
        return kind

    return pa.schema([field.with_type(plain(field.type)).remove_metadata() for field in schema])


def create_file(location: str) -> tuple[str | None, Sink]:
    """A new file, with the folders above it. Its path, if it is on this machine."""
    local = local_path(location)
    if local is not None:
        os.makedirs(os.path.dirname(local), exist_ok=True)
        return local, pa.OSFile(local, "wb")
    filesystem, path = pa.fs.FileSystem.from_uri(location)  # credentials as pyarrow finds them in the environment
    with contextlib.suppress(NotImplementedError):  # where there are no folders, as in object stores, none is needed
        filesystem.create_dir(path.rsplit("/", 1)[0], recursive=True)
    return None, filesystem.open_output_stream(path)


def open_input(location: str) -> Any:
    """A file to read, as a context manager."""
    local = local_path(location)
    if local is not None:
        return pa.OSFile(local, "rb")
    filesystem, path = pa.fs.FileSystem.from_uri(location)
    return filesystem.open_input_file(path)


@contextlib.contextmanager
def opened_parquet(location: str) -> Iterator[pq.ParquetFile]:
    """By default Arrow reads row groups as a whole, and lets go of none before the end of the file."""
    with open_input(location) as data, pq.ParquetFile(data, pre_buffer=False, buffer_size=READ_BYTES) as file:
        yield file


RESULT_SCHEMA = "result string"


def writer_of(plan: Plan, names: Sequence[str]) -> Any:
    """The function that `mapInArrow` runs in each task: one row, the task's result as JSON. `names`: the columns'."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        named = (batch.rename_columns(names) for batch in batches)
        result = write_rows(named, plan, 0 if context is None else context.partitionId())
        yield pa.RecordBatch.from_pydict({"result": [msgspec.json.encode(result).decode()]})

    return write


def read_results(texts: Iterable[str]) -> WriteResult:
    """The results of all tasks, together."""
    decoder = msgspec.json.Decoder(WriteResult)
    whole = WriteResult()
    for text in texts:
        result = decoder.decode(text)
        account = whole.account.plus(result.account)
        whole = WriteResult((*whole.table, *result.table), (*whole.quarantine, *result.quarantine), account)
    return whole
