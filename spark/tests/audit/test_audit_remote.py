"""The audit over the wire: a broker that is gone is told, and offsets alone give the order of a log."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from spark.tests.audit.replica_sets import rows_of, sound
from tests.cluster.driving import create, quiet, until

from strandline.testing.local_cluster import LocalCluster
from strandline_spark import schemas
from strandline_spark.jobs.audit.job import audit
from strandline_spark.jobs.audit.ledger import Losses
from strandline_spark.jobs.audit.levels import by_log
from strandline_spark.jobs.audit.replicas import measured, replicas_over_the_wire
from strandline_spark.jobs.audit.report import CLEAN, INCOMPLETE, AuditReport, report_of
from strandline_spark.jobs.audit.rows import frame, normal
from strandline_spark.jobs.audit.walk import along_the_logs
from strandline_spark.persisted import persisted
from strandline_spark.replica.source import ReplicaSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(180)


def options_of(cluster: LocalCluster) -> dict[str, str]:
    return {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": "t"}


def audit_of(spark: "SparkSession", cluster: LocalCluster) -> AuditReport:
    return report_of(audit(spark, options_of(cluster), compacted=[]), 20, Losses(()), ())


def records_in(cluster: LocalCluster) -> int:
    """Of all replicas, without Spark."""
    source = ReplicaSource(options_of(cluster))
    reader = source.reader(source.schema())
    parts = [part for split in reader.partitions() for part in reader.read(split)]
    return sum(row["records"] for part in parts for row in part.to_pylist())


@pytest.mark.long
def test_a_broker_that_is_gone_is_reported_and_the_others_are_judged(spark: "SparkSession", tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 2) as cluster:
        create(cluster, "t", 2)
        producer = Producer(quiet(cluster.bootstrap, acks="all"))
        for at in range(6):
            producer.produce("t", b"%d" % at, partition=at % 2)
        assert producer.flush(20) == 0

        until(lambda: records_in(cluster) == 12, 60)
        found = audit_of(spark, cluster)
        assert (found.status, found.totals["replicas"], found.totals["records"]) == (CLEAN, 4, 12)
        cluster.node(2).kill()
        found = audit_of(spark, cluster)
    assert (found.status, found.totals["replicas"], found.totals["records"]) == (INCOMPLETE, 2, 6)
    assert found.unread == tuple(
        f"t-{at} on broker 2: its broker does not answer, or does not return it" for at in range(2)
    )


def test_batches_without_positions_are_walked_by_their_offsets_and_sorted_once(spark: "SparkSession") -> None:
    """In whatever order tasks bring them; and the order that batches are kept in is the one that the walk wants."""
    rng = random.Random(3)
    made = [sound(f"t-{at}", rng) for at in range(20)]
    rows: list[dict[str, Any]] = [
        {**row, "directory": None, "segment": None, "position": None} for row in rows_of(made)["batch"]
    ]
    cut = next(row for row in rows if row["topic"] == "t-0" and row["base_offset"] >= 3)
    cut |= {"last_offset": None, "leader_epoch": None, "fault": "corrupt"}
    rng.shuffle(rows)
    with persisted(by_log(normal(frame(spark, rows, schemas.REPLICA_BATCH)))) as batches:
        known = replicas_over_the_wire(measured(batches), [])
        walked: Any = along_the_logs(batches, known, ())
        wrong = walked.where("rule in ('gap', 'overlap', 'epoch-order') and topic <> 't-0'").collect()
        assert [row["what"] for row in wrong] == []
        corrupt = walked.where("rule = 'corrupt'").collect()
        assert [(row["topic"], row["offset"]) for row in corrupt] == [("t-0", cut["base_offset"])]
        plan = walked._jdf.queryExecution().executedPlan().toString().split("InMemoryRelation")[0]
    assert plan.count("Sort [") == 1, "besides that of producers' sequences"
