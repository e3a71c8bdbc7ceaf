"""`emit`: the rows of a DataFrame into a topic, each exactly once, through crashes of everything at any moment."""

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession

from strandline_spark.jobs.emit import running
from strandline_spark.jobs.emit.checkpoint import Checkpoint
from strandline_spark.jobs.emit.plan import Finished
from strandline_spark.jobs.emit.staged.staging import message_rows
from strandline_spark.schemas import EMITTED


def emit(
    df: DataFrame,
    *,
    topic: str,
    checkpoint: str,
    options: Mapping[str, str],
    key: str | None = None,
    value: str | None = None,
    source: str | None = None,
    lanes: int | None = None,
    verify: bool = True,
    notify: running.Notify = lambda text: None,
) -> DataFrame:
    """Write `df` to `topic`; when this returns, each row is there once. Called again with the same checkpoint after
    whatever ended it, it goes on; after its end it does nothing.

    `options`: `kafka.*` options of the connector. `key`, `value`: SQL expressions (default: the columns of that name;
    without a column value, each row as JSON). `source` names what is emitted: another one is refused on the same
    checkpoint (default: how `df` is made). `lanes`: how many files are written side by side; rows keep their order
    within one file and partition. Returns schemas.EMITTED. Raises StrandlineError.
    """
    named = source if source is not None else running.source_of(df)
    finished = run(
        df.sparkSession,
        lambda: message_rows(df, key=key, value=value),
        checkpoint=Checkpoint(checkpoint),
        options=options,
        source="\n".join([named, *(f"{name} {text}" for name, text in (("key", key), ("value", value)) if text)]),
        topic=topic,
        lanes=lanes,
        verify=verify,
        notify=notify,
    )
    rows = [(row.lane, row.partition, row.rows, row.end_offset) for row in finished.written]
    return df.sparkSession.createDataFrame(rows, EMITTED)


def run(
    spark: SparkSession,
    rows: Callable[[], DataFrame],
    *,
    checkpoint: Checkpoint,
    options: Mapping[str, str],
    source: str,
    topic: str,
    lanes: int | None,
    verify: bool,
    notify: running.Notify,
) -> Finished:
    config = running.exactly_once(options)
    with checkpoint.held():
        refusal = running.why_refused(checkpoint, source, topic)
        if refusal is not None:
            raise refusal
        finished = checkpoint.finished()
        if finished is not None:
            checkpoint.forget_rows()  # if it died before it could
            notify(f"this run has finished before, with {finished.rows:,} rows: there is nothing to do")
            return finished
        plan = checkpoint.plan()
        if plan is None:
            plan = running.begin(rows, checkpoint, config, source=source, topic=topic, lanes=lanes)
            known = {}
        else:
            known = running.resume(checkpoint, plan, config, notify)
        written = running.write(spark, checkpoint, plan, config, known)
        return running.finish(checkpoint, plan, config, written, notify, verify=verify)
