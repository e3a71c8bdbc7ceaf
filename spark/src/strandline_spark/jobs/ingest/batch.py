"""What one batch of the ingest does, exactly once, wherever its process dies.

The table's commit is the batch's. Before it the quarantine table takes the batch's bad records; if the process dies
between the two, that is taken back when the batch comes again, and both are written anew. So the tables agree even if
the declaration has changed since.
"""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.base.value import Value
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.ingest.declaration import Pipeline
from strandline_spark.jobs.ingest.parsing import QUARANTINED, parse
from strandline_spark.jobs.ingest.shaping import dropped_bits, shape
from strandline_spark.tables import Table, open_table
from strandline_spark.tables.account import Account, Span
from strandline_spark.tables.files import Layout
from strandline_spark.tables.parquet import ParquetTable
from strandline_spark.tables.schema import check_columns, nullable
from strandline_spark.tables.table import run
from strandline_spark.tables.writing import FAILED, HIDDEN, QUARANTINE, Plan, WriteResult

SEEN = "strandline_records"


class Taken(Value, frozen=True):
    """What became of a batch; `was_there`: all of it was in the table already."""

    batch: int
    account: Account
    was_there: bool = False


class Ingestion:
    """The tables of one pipeline while it runs. `take` is for foreachBatch; it may be called again for any batch."""

    def __init__(self, pipeline: Pipeline, application: str, records: DataFrame) -> None:
        """Opens the tables, made if need be, with the columns that `records` (any topic rows) lead to."""
        self.pipeline = pipeline
        sink = pipeline.declared.sink
        schema = table_schema(records, pipeline)
        self.table: Table = open_table(
            sink.format,
            sink.table,
            application=application,
            schema=schema,
            partition_by=pipeline.partition_by,
            catalog=sink.catalog,
        )
        self.quarantine: ParquetTable | None = None
        if pipeline.may_quarantine:
            try:
                self.quarantine = ParquetTable(pipeline.quarantine, application=application, schema=QUARANTINED)
            except BaseException:
                self.table.close()  # a notebook goes on, and would lock itself out
                raise
        self.keeps = False  # did the last batch have bad records? Then the next is kept while it is gone through twice

    def close(self) -> None:
        self.table.close()
        if self.quarantine is not None:
            self.quarantine.close()

    def take(self, records: DataFrame, batch: int) -> Taken:
        """Topic rows of one batch in. Raises StrandlineError, with nothing written, where an expectation says so."""
        if self.table.has(batch):
            return Taken(batch, Account(), was_there=True)
        if self.quarantine is not None and self.quarantine.last_batch() == batch:
            self.quarantine.take_back(batch)
        layout = self.table.begin(batch)
        aside = None if self.quarantine is None else self.quarantine.begin(batch)
        try:
            result = self.write(records, layout, aside)
            self.refuse(result.account)
        except BaseException:
            self.table.abandon(layout)
            if self.quarantine is not None and aside is not None:
                self.quarantine.abandon(aside)
            raise
        if self.quarantine is not None and aside is not None:
            if result.quarantine:
                self.quarantine.commit(batch, aside, result.quarantine, Account(rows=result.account.quarantined))
            else:
                self.quarantine.abandon(aside)
        self.table.commit(batch, layout, result.table, result.account)
        return Taken(batch, result.account)

    def write(self, records: DataFrame, layout: Layout, aside: Layout | None) -> WriteResult:
        """All rows of the batch into files that nobody sees yet, in one job; in two where SQL met bad records."""
        expectations = self.pipeline.expectations
        plan = Plan(layout, aside, dropped_bits(expectations), tuple(each.name for each in expectations))
        declared = self.pipeline.declared
        parsed = parse(records, declared.value, declared.key, self.pipeline.columns)
        if self.pipeline.sql is None:
            result = run(shape(parsed, self.pipeline), plan)
            seen = result.account.rows + result.account.quarantined + result.account.dropped
            return with_account(result, rows_in=seen)
        return self.write_by_sql(parsed, plan)

    def write_by_sql(self, parsed: DataFrame, plan: Plan) -> WriteResult:
        """SQL sees good rows only, so bad ones are written by a job of their own, if there are any."""
        if self.keeps:
            parsed = parsed.persist()
        try:
            watched = parsed.observe(SEEN, F.count(F.lit(1)), F.count_if(F.col(QUARANTINE).isNotNull()))
            rows = shape(watched, self.pipeline)
            result, observed = run_observed(rows, plan)
            records, bad = observed or counted(parsed)
            if bad:
                also = run(bad_rows(parsed, rows), plan)
                account = result.account.plus(also.account)
                result = WriteResult(result.table, (*result.quarantine, *also.quarantine), account)
            self.keeps = bad > 0
        finally:
            parsed.unpersist()
        seen = result.account.rows + result.account.quarantined + result.account.dropped
        return with_account(result, rows_in=records, filtered=records - seen)

    def refuse(self, account: Account) -> None:
        """Raises StrandlineError if the batch may not become the table's."""
        for each in self.pipeline.expectations:
            count = account.failed.get(each.name, 0)
            if each.action == "fail" and count:
                raise StrandlineError(
                    f"{count} rows do not meet the expectation {each.name!r}: {each.check};"
                    f" {offsets_of(account)}; nothing of this batch was written",
                    "correct the producer or the expectation; action quarantine would set the rows aside and go on",
                )
        mine = self.table.application
        for application, other in self.table.accounts().items():
            if application != mine:
                refuse_overlap(account, other, application)

    def compact(self, spark: Any, batch: int) -> None:
        """After every so many batches, as declared. Batches are counted over restarts."""
        wanted = self.pipeline.declared.sink.compaction
        if wanted.every and (batch + 1) % wanted.every == 0:
            self.table.compact(spark, wanted.target_mb << 20, wanted.files_min)
            if self.quarantine is not None:
                self.quarantine.compact(spark, wanted.target_mb << 20, wanted.files_min)


def table_schema(records: DataFrame, pipeline: Pipeline) -> Any:
    """The columns of the table that topic rows become. Raises StrandlineError for SQL that is wrong, and the like."""
    from pyspark.sql.types import StructType

    empty = records.sparkSession.createDataFrame([], records.schema)
    result = pipeline.declared
    shaped = shape(parse(empty, result.value, result.key, pipeline.columns), pipeline)
    schema = nullable(StructType([field for field in shaped.schema if field.name not in HIDDEN]))
    check_columns(schema, pipeline.partition_by)
    return schema


def bad_rows(parsed: DataFrame, rows: DataFrame) -> DataFrame:
    """The bad records among parsed rows, in the columns of `rows`: their place in the topic, and why."""
    bad = parsed.where(F.col(QUARANTINE).isNotNull())
    given = {"topic", "partition", "offset", QUARANTINE}
    columns = [
        F.col(field.name) if field.name in given else F.lit(None).cast(field.dataType).alias(field.name)
        for field in rows.schema
        if field.name != FAILED
    ]
    return bad.select(*columns)


def run_observed(rows: DataFrame, plan: Plan) -> tuple[WriteResult, tuple[int, int] | None]:
    """The job, and what it counted on the way; None where Spark could answer without going through the records."""
    from strandline_spark.tables.table import result_rows
    from strandline_spark.tables.writing import read_results

    frame = result_rows(rows, plan)
    result = read_results(row.result for row in frame.collect())
    # Observation.get waits forever where the plan was simplified to nothing; the executed plan itself shows it at once.
    metrics = frame._jdf.queryExecution().observedMetrics()
    if not metrics.contains(SEEN):
        return result, None
    row = metrics.apply(SEEN)
    return result, (int(row.getLong(0)), int(row.getLong(1)))


def counted(parsed: DataFrame) -> tuple[int, int]:
    row = parsed.agg(F.count(F.lit(1)), F.count_if(F.col(QUARANTINE).isNotNull())).collect()[0]
    return int(row[0]), int(row[1])


def with_account(result: WriteResult, *, rows_in: int, filtered: int = 0) -> WriteResult:
    return WriteResult(
        result.table, result.quarantine, result.account.plus(Account(rows_in=rows_in, filtered=filtered))
    )


def offsets_of(account: Account) -> str:
    shown = [
        f"{topic}-{number} {span.first}..{span.end - 1}"
        for topic, of in account.spans.items()
        for number, span in of.items()
    ]
    return f"offsets {', '.join(shown[:4])}{' …' if len(shown) > 4 else ''}"


def refuse_overlap(mine: Account, other: Account, application: str) -> None:
    """Raises StrandlineError where another checkpoint has brought the same offsets: they would be in the table
    twice."""
    for topic, of in mine.spans.items():
        for number, span in of.items():
            there = other.spans.get(topic, {}).get(number, Span(0, 0, 0))
            if there.records and span.first < there.end and there.first < span.end:
                raise StrandlineError(
                    f"the table has offsets {there.first}..{there.end - 1} of {topic}-{number} from another checkpoint"
                    f" (query {application}): {span.first}..{span.end - 1} would be there twice",
                    f"go on with that checkpoint, or start a new one behind it: {starting_behind(other)}",
                )


def starting_behind(account: Account) -> str:
    import json

    ends = {topic: {str(number): end for number, end in of.items()} for topic, of in account.ends.items()}
    return f"starting = '{json.dumps(ends)}'"
