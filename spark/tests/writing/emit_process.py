"""A run of `emit` without a JVM, as a process of its own that tests kill and stop: `python -m … CHECKPOINT BOOTSTRAP`.

It does what the job does behind the plan; the lanes come one after the other.
"""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline_spark.jobs.emit import running
from strandline_spark.jobs.emit.checkpoint import STAGED, Checkpoint
from strandline_spark.jobs.emit.lanes import write_lane
from strandline_spark.jobs.emit.plan import Finished
from strandline_spark.jobs.emit.staged.staging import staged_rows
from strandline_spark.jobs.emit.topics import topic_view

BATCH_BYTES = "4000"  # many batches, so that there are many moments to be killed at


def config_of(bootstrap: str) -> ClientConfig:
    return running.exactly_once({"kafka.bootstrap.servers": bootstrap, "kafka.batch.size": BATCH_BYTES})


def staged(folder: Path, bootstrap: str, topic: str, lanes: list[pa.Table]) -> Checkpoint:
    """A checkpoint whose plan is made, with nothing written yet."""
    checkpoint = Checkpoint(str(folder))
    with checkpoint.held(), Cluster(config_of(bootstrap)) as cluster:
        checkpoint.rows.mkdir()
        for number, table in enumerate(lanes):
            pq.write_table(table, checkpoint.rows / f"part-{number}.parquet")
        (checkpoint.rows / STAGED).touch()
        view = topic_view(cluster, topic)
        checkpoint.keep_plan(running.planned(cluster, view, staged_rows(checkpoint), "a test's rows"))
    return checkpoint


def run(checkpoint: Checkpoint, bootstrap: str) -> Finished:
    config = config_of(bootstrap)
    plan = checkpoint.plan()
    assert plan is not None
    known = running.resume(checkpoint, plan, config, print)
    written = [row for lane in plan.lanes for row in write_lane(checkpoint, plan, lane, config, known, again=False)]
    return running.finish(checkpoint, plan, config, written, print, verify=True)


if __name__ == "__main__":
    run(Checkpoint(sys.argv[1]), sys.argv[2])
