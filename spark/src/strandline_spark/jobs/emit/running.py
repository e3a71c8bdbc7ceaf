"""The steps of a run, each of which finds what an earlier one has left and goes on from there.

stage    the rows are fixed: what the query gives tomorrow does not matter
plan     producer ids, and where the topic ends; durable, and only then
write    each lane, as far as it is not there
prove    the headers of the topic say that each row is there once
finish
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from strandline.client.cluster import Cluster, TopicView
from strandline.client.config import ACKS_ALL, ClientConfig
from strandline.client.errors import KafkaError
from strandline_spark.errors import BadOption, StrandlineError, sentence_of
from strandline_spark.jobs.emit.checkpoint import Checkpoint
from strandline_spark.jobs.emit.lanes import write_lanes
from strandline_spark.jobs.emit.plan import (
    Finished,
    Lane,
    Plan,
    TopicNow,
    Written,
    why_not_same_topic,
    why_not_searchable,
    why_not_this_run,
)
from strandline_spark.jobs.emit.recovery import Key, find_written, prove_written
from strandline_spark.jobs.emit.staged.staging import check_partitions, stage, staged_rows
from strandline_spark.jobs.emit.topics import is_compacted, targets_of, topic_now, topic_view
from strandline_spark.progress import progress

Notify = Callable[[str], None]
IDS = re.compile(r"#\d+L?")


def exactly_once(options: Mapping[str, str]) -> ClientConfig:
    """The client's configuration. Raises BadOption for settings with which nothing is exactly once."""
    config = ClientConfig.of(options)
    if config.acks != ACKS_ALL or not config.enable_idempotence:
        raise BadOption("exactly once needs acks=all and idempotence", "leave kafka.acks and kafka.enable.idempotence")
    return config


def source_of(df: DataFrame) -> str:
    """A text for what a DataFrame is: its columns and how it is made, but for numbers that differ in each session."""
    made = getattr(df, "_jdf", None)  # Spark Connect has none
    how = IDS.sub("", made.queryExecution().analyzed().toString()) if made is not None else ""
    return f"{df.schema.simpleString()}\n{how}".strip()


def why_refused(checkpoint: Checkpoint, source: str, topic: str) -> StrandlineError | None:
    plan = checkpoint.plan()
    return None if plan is None else why_not_this_run(plan, source, topic)


def begin(
    rows: Callable[[], DataFrame],
    checkpoint: Checkpoint,
    config: ClientConfig,
    *,
    source: str,
    topic: str,
    lanes: int | None,
) -> Plan:
    """Stage the rows and write the plan. Nothing is sent before it is durable."""
    with Cluster(config) as cluster:
        view = topic_view(cluster, topic)
        frame = rows()
        with progress(frame.sparkSession, "staging rows"), readable_errors():
            stage(frame, checkpoint, lanes)
        view = topic_view(cluster, topic)  # as it is now: staging may have taken hours
        check_partitions(checkpoint, len(view.partitions))
        plan = planned(cluster, view, staged_rows(checkpoint), source)
    checkpoint.keep_plan(plan)
    return plan


def planned(cluster: Cluster, view: TopicView, files: Mapping[str, int], source: str) -> Plan:
    targets = targets_of(cluster, view)
    lanes = tuple(
        Lane(number, name, rows, *producer_id(cluster)) for number, (name, rows) in enumerate(sorted(files.items()))
    )
    compacted = is_compacted(cluster, view.name)
    return Plan(source, view.name, view.topic_id, targets, lanes, now_ms(), compacted)


def producer_id(cluster: Cluster) -> tuple[int, int]:
    try:
        return cluster.init_producer_id()
    except KafkaError as error:
        raise StrandlineError(f"no producer id: {error.problem}", "exactly once needs idempotent producers") from None


def resume(checkpoint: Checkpoint, plan: Plan, config: ClientConfig, notify: Notify) -> dict[Key, Written]:
    """What is there already. Raises StrandlineError if that cannot be known any more."""
    refusal = why_not_searchable(plan, same_topic(plan, config))
    done = [checkpoint.lane_written(lane.number) for lane in plan.lanes]
    if None not in done:
        return {}  # nothing is to be searched for: what is left is the proof
    if refusal is not None:
        raise refusal
    known = find_written(config, plan)
    there = sum(written.rows for written in known.values())
    notify(f"going on where an earlier run ended: {there:,} of {plan.rows:,} rows are in the topic")
    return known


def same_topic(plan: Plan, config: ClientConfig) -> TopicNow:
    """Raises StrandlineError if the topic is not the one that the run began with."""
    with Cluster(config) as cluster:
        now = topic_now(cluster, plan)
    refusal = why_not_same_topic(plan, now)
    if refusal is not None:
        raise refusal
    assert now is not None
    return now


@contextmanager
def readable_errors() -> Iterator[None]:
    """What a task has said, without Spark's traces around it."""
    try:
        yield
    except PySparkException as error:
        raise sentence_of(error) from error


def write(
    spark: SparkSession, checkpoint: Checkpoint, plan: Plan, config: ClientConfig, known: Mapping[Key, Written]
) -> tuple[Written, ...]:
    """Every lane, until all its rows are acknowledged. Raises StrandlineError with what a task has said."""
    with progress(spark, "writing rows"), readable_errors():
        write_lanes(spark, checkpoint, plan, config, known).collect()
    return tuple(row for lane in plan.lanes for row in checkpoint.lane_written(lane.number) or ())


def finish(
    checkpoint: Checkpoint,
    plan: Plan,
    config: ClientConfig,
    written: Sequence[Written],
    notify: Notify,
    *,
    verify: bool,
) -> Finished:
    """The last proof, then the last word."""
    now = same_topic(plan, config)
    rest = f"topic '{plan.topic}' have been acknowledged, and are not counted again:"
    if verify and plan.compacted:
        notify(f"all rows for {rest} it is compacted, and a cleaner may have taken some")
    elif verify and why_not_searchable(plan, now) is not None:
        notify(f"all rows for {rest} retention has taken the first already")
    elif verify:
        prove_written(config, plan, written)
    rows = sum(row.rows for row in written)
    assert rows == plan.rows, f"{rows} rows were written, {plan.rows} staged"
    finished = Finished(rows, now_ms(), tuple(written))
    checkpoint.keep_finished(finished)
    return finished


def now_ms() -> int:
    return int(time.time() * 1000)
