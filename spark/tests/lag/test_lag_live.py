"""Lag of a live cluster, without Spark: groups, queries by their checkpoints, topics; and the command on them."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cluster.client_topics import batch_of, config_of, create_topic
from tests.printed import hold

from strandline.cli.app import app
from strandline.client.cluster import Cluster
from strandline.client.errors import KafkaError
from strandline.testing.local_cluster import LocalCluster
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.lag.samples import Sample, read
from strandline_spark.jobs.lag.sampling import Sampler, group_names
from strandline_spark.jobs.lag.trouble import Trouble


def filled(cluster: LocalCluster, *counts: int, timestamp: int = 1_000) -> str:
    """A topic with so many records in each partition."""
    topic = create_topic(cluster.bootstrap, len(counts))
    with Cluster(config_of(cluster.bootstrap)) as client:
        for partition, count in enumerate(counts):
            if count:
                client.produce(topic, partition, bytes(batch_of([b"v"] * count, timestamp)))
    return topic


def checkpoint(folder: Path, topic: str, *positions: dict[int, int], committed: int) -> str:
    """Of a query whose batches reach up to these positions, of which so many are committed."""
    for kind in ("offsets", "commits"):
        (folder / kind).mkdir(parents=True)
    for batch, at in enumerate(positions):
        row = {str(p): {"epoch": 0, "offset": o} for p, o in at.items()}
        line = json.dumps({"topics": {topic: {"id": "x", "partitions": row}}, "version": 1})
        (folder / "offsets" / str(batch)).write_text(f'v1\n{{"batchTimestampMs":5}}\n{line}')
    for batch in range(committed):
        (folder / "commits" / str(batch)).write_text("v1\n{}")
    return str(folder)


def by_partition(samples: list[Sample], kind: str) -> dict[int, Sample]:
    return {sample.partition: sample for sample in samples if sample.kind == kind}


def command(cluster: LocalCluster, *arguments: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "strandline", "pipeline", "lag", "--bootstrap", cluster.bootstrap, *arguments]
    done = subprocess.run(line, check=False, capture_output=True, text=True, timeout=100)
    hold(line[3:], done.stdout)
    return done


def test_a_groups_lag_is_what_lies_behind_its_commits(broker: LocalCluster) -> None:
    topic = filled(broker, 10, 20, 5)
    with Cluster(config_of(broker.bootstrap)) as client:
        client.offset_commit("readers", {(topic, 0): 4, (topic, 1): 20})
        assert "readers" in group_names(client, Trouble())
        samples = Sampler(client, groups=["readers"], clock=lambda: 61.0).sample()
    found = by_partition(samples, "group")
    assert [found[p].lag for p in range(3)] == [6, 0, None]
    assert [found[p].delay_ms for p in range(3)] == [60_000, 0, None]
    assert {p: s.end_offset for p, s in by_partition(samples, "topic").items()} == {0: 10, 1: 20, 2: 5}


def test_a_querys_lag_is_behind_its_last_committed_batch(broker: LocalCluster, tmp_path: Path) -> None:
    topic = filled(broker, 10, 10)
    folder = checkpoint(tmp_path / "c", topic, {0: 3, 1: 3}, {0: 10, 1: 10}, committed=1)
    with Cluster(config_of(broker.bootstrap)) as client:
        sampler = Sampler(client, queries={"etl": folder}, commit_to="etl-progress")
        found = by_partition(sampler.sample(), "query")
        assert [(found[p].lag, found[p].batch) for p in range(2)] == [(7, 0), (7, 0)]
        committed = client.offset_fetch("etl-progress")
        assert {at: row.offset for at, row in committed.items()} == {(topic, 0): 3, (topic, 1): 3}
        (tmp_path / "c" / "commits" / "1").write_text("v1\n{}")
        assert [s.lag for s in by_partition(sampler.sample(), "query").values()] == [0, 0]


def test_what_was_deleted_unread_is_reported(broker: LocalCluster, tmp_path: Path) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    topic = filled(broker, 50)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, 30)]).values():
        future.result()
    with Cluster(config_of(broker.bootstrap)) as client:
        client.offset_commit("late", {(topic, 0): 10})
        [sample] = by_partition(Sampler(client, groups=["late"]).sample(), "group").values()
    assert (sample.lag, sample.expired, sample.position) == (20, 20, 10)
    assert sample.delay_ms is not None


def test_a_topic_that_was_deleted_has_no_samples(broker: LocalCluster, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "c", "never-was", {0: 3}, committed=1)
    with Cluster(config_of(broker.bootstrap)) as client:
        assert Sampler(client, queries={"etl": folder}).sample() == []


def test_the_next_records_own_time_counts_in_the_middle_of_a_batch(broker: LocalCluster) -> None:
    from strandline.wire.batch import build

    topic = create_topic(broker.bootstrap, 1)
    batch = build([(1_000 * at, None, b"v", ()) for at in range(10)])
    with Cluster(config_of(broker.bootstrap)) as client:
        client.produce(topic, 0, batch)
        client.offset_commit("middle", {(topic, 0): 7})
        [sample] = by_partition(Sampler(client, groups=["middle"], clock=lambda: 10.0).sample(), "group").values()
    assert (sample.lag, sample.delay_ms) == (3, 3_000)


def test_a_group_with_members_is_not_committed_to(broker: LocalCluster, tmp_path: Path) -> None:
    from confluent_kafka import Consumer

    topic = filled(broker, 10)
    folder = checkpoint(tmp_path / "c", topic, {0: 3}, committed=1)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "taken", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        until = time.monotonic() + 30
        while not consumer.assignment() and time.monotonic() < until:
            consumer.poll(0.2)
        with (
            Cluster(config_of(broker.bootstrap)) as client,
            pytest.raises(KafkaError, match=r"(?s)taken.*use a group that has no members"),
        ):
            Sampler(client, queries={"etl": folder}, commit_to="taken").sample()
    finally:
        consumer.close()


def test_a_folder_that_is_no_checkpoint_is_named(broker: LocalCluster, tmp_path: Path) -> None:
    with Cluster(config_of(broker.bootstrap)) as client, pytest.raises(StrandlineError, match="is not a checkpoint"):
        Sampler(client, queries={"etl": str(tmp_path)}).sample()


def test_the_command_watches_and_keeps_what_it_saw(broker: LocalCluster, tmp_path: Path) -> None:
    topic, file = filled(broker, 10, 20), tmp_path / "lag.jsonl"
    with Cluster(config_of(broker.bootstrap)) as client:
        client.offset_commit("watched", {(topic, 0): 4, (topic, 1): 20})
    arguments = ["--group", "watched", "--every", "0.2", "--for", "0.5", "--file", str(file), "--max-lag", "5"]
    done = command(broker, *arguments)
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert f"group watched {topic}: lag 6 (worst {topic}-0: 6)" in lines[-1]
    assert done.returncode == 2
    assert "group watched is 6 records behind" in done.stderr
    assert len(list(read(file))) == 3 * 4
    done = command(broker, "--group", "watched", "--once", "--json", "--max-lag", "6")
    assert done.returncode == 0
    [samples] = [json.loads(line) for line in done.stdout.splitlines()]
    assert {s["partition"]: s["lag"] for s in samples if s["kind"] == "group"} == {0: 6, 1: 0}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--from", "x", "--group", "g"], "--from reads files"),
        (["--commit-to", "g"], "--commit-to needs exactly one --query"),
        (["--every", "0"], "--every must be more than 0 seconds"),
        (["--option", "no.such.key=1", "--once"], "no.such.key"),
        (["--query", "/nowhere", "--once"], "/nowhere is not a checkpoint of a streaming query"),
        (["--group", "misspelt", "--once", "--max-lag", "5"], "group misspelt has not committed any offset"),
        (["--once", "--file", "/nowhere/lag.jsonl"], "/nowhere/lag.jsonl: No such file or directory"),
    ],
)
def test_invalid_input_is_rejected(
    broker: LocalCluster, arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        app(["pipeline", "lag", "--bootstrap", broker.bootstrap, *arguments])
    assert ended.value.code in (1, 2)
    assert expected in capsys.readouterr().err
