"""Executors in processes of their own: what runs in one process runs on a Spark cluster, unchanged."""

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from spark.tests.sources import environment
from tests.cluster.driving import create, quiet

from strandline.cli.lab.sim import write_history
from strandline.sim.runs.plan import draw_plan
from strandline.sim.runs.run import run_plan
from strandline.testing.local_cluster import LocalCluster
from strandline_spark.jobs.simulate import store

MASTER = "local-cluster[2,1,1024]"
RECORDS = 60


@pytest.fixture
def topic(broker: LocalCluster) -> str:
    name = f"far-{uuid.uuid4().hex[:10]}"
    create(broker, name, 2)
    producer = Producer(quiet(broker.bootstrap))
    for number in range(RECORDS):
        producer.produce(name, b"%d" % number, partition=number % 2)
    assert producer.flush(20) == 0
    return name


@pytest.mark.long
@pytest.mark.timeout(300)  # three JVMs: half a minute on a quiet machine
def test_campaigns_topics_and_histories_run_on_a_cluster_of_executors(
    broker: LocalCluster, topic: str, tmp_path: Path
) -> None:
    run_plan(draw_plan(18), keep=lambda *kept: write_history(tmp_path / "history.jsonl", "18", *kept))
    command = [sys.executable, "-m", "spark.tests.distributed", MASTER, broker.bootstrap, topic, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=environment())
    assert ran.returncode == 0, ran.stderr
    assert "Setting default log level" not in ran.stderr  # nobody asked
    report = json.loads(ran.stdout.splitlines()[-1])
    assert report["executors"] == 2
    assert report["campaign"] == [2, 2, 1, True]
    assert len(store.done(tmp_path / "c")) == 3
    assert report["topic"] == [[0, 30, 29], [1, 30, 29]]
    assert report["history"]["violations"] == report["history"]["problems"] == 0
    assert report["history"]["operations"] > 100
