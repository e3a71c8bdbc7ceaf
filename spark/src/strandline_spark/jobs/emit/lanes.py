"""Lanes as Spark runs them: one task a lane, anywhere, again if a task fails."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import KafkaError
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.emit.checkpoint import Checkpoint
from strandline_spark.jobs.emit.lane import RUN_AGAIN, Found
from strandline_spark.jobs.emit.outlet import TopicOutlet
from strandline_spark.jobs.emit.plan import Lane, Plan, Written
from strandline_spark.jobs.emit.recovery import Key, new_track, report
from strandline_spark.jobs.emit.staged.encoding import encode
from strandline_spark.jobs.emit.staged.rows import pieces
from strandline_spark.jobs.emit.writing import Writing
from strandline_spark.schemas import EMITTED


def write_lane(
    checkpoint: Checkpoint, plan: Plan, lane: Lane, config: ClientConfig, known: Mapping[Key, Written], *, again: bool
) -> tuple[Written, ...]:
    """Carry one lane to the topic, or as much of it as is not there yet. `known`: what was found there before;
    `again`: another attempt may have written since. Raises StrandlineError; whoever calls again goes on."""
    done = checkpoint.lane_written(lane.number)
    if done is not None:
        return done
    tracks = {t.partition: new_track(plan, t, known.get((lane.number, t.partition))) for t in plan.targets}
    with Cluster(config) as cluster:
        outlet = TopicOutlet(cluster, plan, lane)
        try:
            for partition, track in tracks.items() if again else ():
                for found in outlet.search(partition, track.end_offset, track.leader_epoch):
                    if isinstance(found, Found):
                        report(track, found, f"lane {lane.number}, {plan.topic}-{partition}")
            writing = Writing(
                lane,
                tracks,
                outlet,
                lambda rows, sequence: encode(rows, lane, sequence, config, time.time_ns() // 1_000_000),
                topic=plan.topic,
                batch_bytes=config.batch_size,
            )
            written = writing.run(pieces(str(checkpoint.rows / lane.file), lane.number, len(plan.targets)))
        except KafkaError as error:
            raise StrandlineError(f"lane {lane.number}: {error.problem}", error.advice or RUN_AGAIN) from error
        finally:
            outlet.close()
    checkpoint.keep_lane(lane.number, written)
    return written


def write_lanes(
    spark: SparkSession, checkpoint: Checkpoint, plan: Plan, config: ClientConfig, known: Mapping[Key, Written]
) -> DataFrame:
    """What each lane has in each partition in the end (schemas.EMITTED). The lanes are written when it is collected."""
    numbers = spark.range(0, len(plan.lanes), 1, numPartitions=max(1, len(plan.lanes)))
    return numbers.mapInArrow(task(str(checkpoint.folder), plan, config, dict(known)), EMITTED)


def task(
    folder: str, plan: Plan, config: ClientConfig, known: Mapping[Key, Written]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        again = context is not None and context.attemptNumber() > 0
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield rows_of(write_lane(Checkpoint(folder), plan, plan.lanes[number], config, known, again=again))

    return write


def rows_of(written: Sequence[Written]) -> Any:
    columns = {
        "lane": pa.array([row.lane for row in written], pa.int32()),
        "partition": pa.array([row.partition for row in written], pa.int32()),
        "rows": pa.array([row.rows for row in written], pa.int64()),
        "end_offset": pa.array([row.end_offset for row in written], pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)
