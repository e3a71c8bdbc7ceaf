"""Runs of `emit` that are killed, stopped and waked, whose topic changes under them: real processes, a real cluster."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from spark.tests.sources import environment
from spark.tests.writing.emit_process import config_of, run, staged
from spark.tests.writing.emit_topics import each_once, ends, table, wait_rows
from tests.cluster.client_topics import create_topic, delete_topic, recreate_topic

from strandline.testing.local_cluster import LocalCluster
from strandline_spark.errors import DataLoss, StrandlineError
from strandline_spark.jobs.emit import recovery
from strandline_spark.jobs.emit.checkpoint import Checkpoint
from strandline_spark.jobs.emit.lanes import write_lane
from strandline_spark.jobs.emit.plan import Plan

LANES, LANE_ROWS = 3, 5000
ROWS = LANES * LANE_ROWS


def lanes() -> list[object]:
    return [table(lane * LANE_ROWS, LANE_ROWS) for lane in range(LANES)]


def start(checkpoint: Checkpoint, bootstrap: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "spark.tests.writing.emit_process", str(checkpoint.folder), bootstrap]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)


def plan_of(checkpoint: Checkpoint) -> Plan:
    plan = checkpoint.plan()
    assert plan is not None
    return plan


@pytest.mark.parametrize("kills", [2, pytest.param(6, marks=pytest.mark.long)])
def test_killed_again_and_again_each_row_is_there_once(kills: int, broker: LocalCluster, tmp_path: Path) -> None:
    topic = create_topic(broker.bootstrap, 3)
    checkpoint = staged(tmp_path / "c", broker.bootstrap, topic, lanes())
    written = 0
    for _ in range(kills):
        process = start(checkpoint, broker.bootstrap)
        written = wait_rows(broker.bootstrap, topic, written + 500)
        process.kill()
        process.wait()
        assert checkpoint.finished() is None
    assert written < ROWS
    assert run(checkpoint, broker.bootstrap).rows == ROWS
    each_once(broker.bootstrap, topic, ROWS, LANE_ROWS)


@pytest.mark.parametrize("again", [True, False])
def test_a_task_that_knows_nothing_of_the_one_before_it_goes_on_all_the_same(
    broker: LocalCluster, halfway: tuple[str, Checkpoint], again: bool
) -> None:
    """Spark runs a failed task again, with what the driver knew before (`again`); a leader tells the rest."""
    topic, checkpoint = halfway
    plan, config = plan_of(checkpoint), config_of(broker.bootstrap)
    for lane in plan.lanes:
        write_lane(checkpoint, plan, lane, config, {}, again=again)
    each_once(broker.bootstrap, topic, ROWS, LANE_ROWS)


def test_a_zombie_that_wakes_when_all_is_written_changes_nothing(broker: LocalCluster, tmp_path: Path) -> None:
    """It is stopped in the middle of a lane, as by a long pause, and goes on with what it had in its hands."""
    topic = create_topic(broker.bootstrap, 3)
    checkpoint = staged(tmp_path / "c", broker.bootstrap, topic, lanes())
    zombie = start(checkpoint, broker.bootstrap)
    wait_rows(broker.bootstrap, topic, 800)
    os.kill(zombie.pid, signal.SIGSTOP)
    try:
        time.sleep(0.2)
        assert sum(ends(broker.bootstrap, topic).values()) < ROWS
        os.rename(checkpoint.rows, tmp_path / "kept")  # a zombie on another machine would still see them
        os.symlink(tmp_path / "kept", checkpoint.rows)
        run(checkpoint, broker.bootstrap)
        before = ends(broker.bootstrap, topic)
        assert sum(before.values()) == ROWS
    finally:
        os.kill(zombie.pid, signal.SIGCONT)
        zombie.wait(60)
    assert ends(broker.bootstrap, topic) == before
    each_once(broker.bootstrap, topic, ROWS, LANE_ROWS)


def test_two_runs_side_by_side_write_each_row_once(broker: LocalCluster, tmp_path: Path) -> None:
    """As when somebody copies a checkpoint, or locks do not work on its disk."""
    topic = create_topic(broker.bootstrap, 3)
    checkpoint = staged(tmp_path / "c", broker.bootstrap, topic, lanes())
    processes = [start(checkpoint, broker.bootstrap) for _ in range(2)]
    for process in processes:
        process.wait(60)
    if checkpoint.finished() is None:
        run(checkpoint, broker.bootstrap)
    each_once(broker.bootstrap, topic, ROWS, LANE_ROWS)


def test_a_leader_that_is_killed_in_the_middle_leaves_each_row_once(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster", 3) as cluster:
        topic = create_topic(cluster.bootstrap, 3, 3, min_insync_replicas="2")
        checkpoint = staged(tmp_path / "c", cluster.bootstrap, topic, lanes())
        process = start(checkpoint, cluster.bootstrap)
        wait_rows(cluster.bootstrap, topic, 800)
        cluster.nodes[0].kill()
        assert process.wait(100) == 0
        each_once(cluster.bootstrap, topic, ROWS, LANE_ROWS)


@pytest.fixture
def halfway(broker: LocalCluster, tmp_path: Path) -> tuple[str, Checkpoint]:
    """A topic with a part of a run that was killed."""
    topic = create_topic(broker.bootstrap, 3)
    checkpoint = staged(tmp_path / "c", broker.bootstrap, topic, lanes())
    process = start(checkpoint, broker.bootstrap)
    wait_rows(broker.bootstrap, topic, 600)
    process.kill()
    process.wait()
    return topic, checkpoint


@pytest.fixture
def begun(broker: LocalCluster, tmp_path: Path) -> tuple[str, Checkpoint]:
    """A topic with the first lane of a run that has not ended."""
    topic = create_topic(broker.bootstrap, 3)
    checkpoint = staged(tmp_path / "c", broker.bootstrap, topic, lanes())
    plan = plan_of(checkpoint)
    write_lane(checkpoint, plan, plan.lanes[0], config_of(broker.bootstrap), {}, again=False)
    return topic, checkpoint


def test_a_topic_that_was_deleted_is_refused_and_one_that_was_created_anew_too(
    broker: LocalCluster, begun: tuple[str, Checkpoint]
) -> None:
    topic, checkpoint = begun
    recreate_topic(broker.bootstrap, topic, 3)
    with pytest.raises(StrandlineError, match="was deleted and created anew since the run began"):
        run(checkpoint, broker.bootstrap)
    assert sum(ends(broker.bootstrap, topic).values()) == 0
    delete_topic(broker.bootstrap, topic)
    with pytest.raises(StrandlineError, match="does not exist any more"):
        run(checkpoint, broker.bootstrap)


def test_a_topic_with_more_partitions_is_refused(broker: LocalCluster, begun: tuple[str, Checkpoint]) -> None:
    topic, checkpoint = begun
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result()
    with pytest.raises(StrandlineError, match="had 3 partitions when the run began, and has 5"):
        run(checkpoint, broker.bootstrap)


def test_a_topic_whose_beginning_is_gone_is_refused(broker: LocalCluster, begun: tuple[str, Checkpoint]) -> None:
    topic, checkpoint = begun
    partition = next(partition for partition, end in ends(broker.bootstrap, topic).items() if end)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, partition, 1)]).values():
        future.result()
    with pytest.raises(StrandlineError, match=f"{topic}-{partition} begins at offset 1 now"):
        run(checkpoint, broker.bootstrap)


def test_a_run_whose_rows_are_all_there_ends_well_though_retention_has_taken_some(
    broker: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = create_topic(broker.bootstrap, 1)
    checkpoint = staged(tmp_path / "c", broker.bootstrap, topic, [table(0, 100)])
    plan, config = plan_of(checkpoint), config_of(broker.bootstrap)
    write_lane(checkpoint, plan, plan.lanes[0], config, {}, again=False)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, 60)]).values():
        future.result()
    assert run(checkpoint, broker.bootstrap).rows == 100
    assert "retention has taken the first already" in capsys.readouterr().out


def test_rows_that_a_broker_has_lost_after_it_acknowledged_them_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its only disk forgot the log's end, as a disk may that lied about what is durable."""
    monkeypatch.setattr(recovery, "MISSING_PATIENCE_S", 1.0)
    with LocalCluster(tmp_path / "cluster", 1) as cluster:
        topic = create_topic(cluster.bootstrap, 1)
        checkpoint = staged(tmp_path / "c", cluster.bootstrap, topic, [table(0, 200)])
        plan, config = plan_of(checkpoint), config_of(cluster.bootstrap)
        write_lane(checkpoint, plan, plan.lanes[0], config, {}, again=False)
        [node] = cluster.nodes
        node.kill()
        [segment] = (node.data_path / f"{topic}-0").glob("*.log")
        os.truncate(segment, segment.stat().st_size // 2)
        node.start()
        node.wait_listening()
        with pytest.raises(DataLoss, match=rf"{topic}-0 has \d+ rows of lane 0 where 200 were acknowledged"):
            run(checkpoint, cluster.bootstrap)
        assert checkpoint.finished() is None
