"""Topics of real nodes become tables, each record once, whatever happens to the process that does it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from spark.tests.sources import environment
from tests.cluster.driving import create, quiet
from tests.printed import hold

from strandline.testing.local_cluster import LocalCluster
from strandline_spark.cli.ingest import ingest as command
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.ingest.job import ingest, ingesting
from strandline_spark.tables import read_table
from strandline_spark.tables.manifest import FOLDER, NAME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 3
PATIENCE_S = 150  # a loaded machine takes a minute to start Spark


class Orders:
    """A topic of JSON orders, of which each tenth is none; and a pipeline for it."""

    def __init__(self, broker: LocalCluster, folder: Path) -> None:
        self.bootstrap = broker.bootstrap
        self.topic = f"orders-{uuid.uuid4().hex[:8]}"
        self.folder = folder
        self.count = 0
        create(broker, self.topic, PARTITIONS)

    def produce(self, count: int) -> None:
        producer = Producer(quiet(self.bootstrap))
        for number in range(self.count, self.count + count):
            order = {"id": number, "amount": number % 90, "region": ("eu", "a=b/c %é")[number % 2]}
            value = json.dumps(order).encode() if number % 10 else b"broken"
            producer.produce(self.topic, value, b"k%d" % number, number % PARTITIONS)
        assert producer.flush(20) == 0
        self.count += count

    def declared(self, **sections: Any) -> dict[str, Any]:
        declaration: dict[str, Any] = {
            "source": {"topic": self.topic, "bootstrap": self.bootstrap, "max_offsets_per_trigger": 150},
            "value": {"format": "json", "columns": {"id": "long not null", "amount": "int", "region": "string"}},
            "sink": {"table": str(self.folder / "table"), "partition_by": ["region", "day = date(timestamp)"]},
        }
        return {**declaration, **{name: {**declaration.get(name, {}), **of} for name, of in sections.items()}}

    def check(self, spark: "SparkSession", kind: str = "parquet") -> None:
        """Every order is in the table once, or in quarantine if it is none."""
        rows = read_table(spark, kind, str(self.folder / "table")).select("id", "partition", "offset").collect()
        assert sorted(row.id for row in rows) == [number for number in range(self.count) if number % 10]
        bad = read_table(spark, "parquet", str(self.folder / "table_quarantine")).collect()
        places = Counter((row.partition, row.offset) for row in [*rows, *bad])
        assert max(places.values()) == 1
        assert len(places) == self.count
        assert {(row.rule, row.value) for row in bad} == {("json", b"broken")}


@pytest.fixture
def orders(broker: LocalCluster, tmp_path: Path) -> Orders:
    return Orders(broker, tmp_path)


def forget_last_commit(checkpoint: Path) -> None:
    """Spark has not noted that it finished its last batch: it will do that again."""
    last = max(
        (path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()), key=lambda path: int(path.name)
    )
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "kind", [pytest.param("parquet", marks=pytest.mark.long), "delta", pytest.param("iceberg", marks=pytest.mark.long)]
)
def test_runs_go_on_where_the_last_one_ended_and_batches_that_come_again_change_nothing(
    kind: str, spark: "SparkSession", orders: Orders
) -> None:
    orders.produce(300)
    declared = orders.declared(sink={"format": kind, "compaction": {"every": 4}})
    first = ingest(declared, spark=spark).as_json()
    assert (first["rows_in"], first["rows_written"], first["quarantined"]) == (300, 270, 30)
    assert first["table"]["dense"] is True
    forget_last_commit(orders.folder / "table" / FOLDER / "checkpoint")
    orders.produce(90)
    second = ingest(declared, spark=spark).as_json()
    assert second["rows_in"] == 90
    assert second["application"] == first["application"]
    assert second["table"]["rows_in"] == 390
    ends = [(row["partition"], row["end_offset"], row["missing"]) for row in second["table"]["partitions"]]
    assert ends == [(0, 130, 0), (1, 130, 0), (2, 130, 0)]
    orders.check(spark, kind)


def test_columns_that_are_inferred_stay_as_they_are(spark: "SparkSession", orders: Orders) -> None:
    orders.produce(60)
    declared = orders.declared()
    declared["value"] = {"format": "json", "schema": "infer"}
    assert ingest(declared, spark=spark).run.rows == 54
    found = read_table(spark, "parquet", str(orders.folder / "table"))
    assert [(field.name, field.dataType.simpleString()) for field in found.schema][5:8] == [
        ("id", "bigint"),
        ("amount", "bigint"),
        ("region", "string"),
    ]
    orders.produce(30)
    assert (orders.folder / "table" / FOLDER / "checkpoint.columns.json").exists()
    assert ingest(declared, spark=spark).run.rows == 27
    orders.check(spark)


def test_readers_that_know_nothing_of_the_table_see_the_same_rows(spark: "SparkSession", orders: Orders) -> None:
    import pyarrow.dataset

    orders.produce(200)
    ingest(orders.declared(), spark=spark)
    table = str(orders.folder / "table")
    exact = {(row.id, row.region, row.offset) for row in read_table(spark, "parquet", table).collect()}
    assert {(row.id, row.region, row.offset) for row in spark.read.parquet(table).collect()} == exact
    found = pyarrow.dataset.dataset(table, format="parquet", partitioning="hive").to_table().to_pylist()
    assert {(row["id"], row["region"], row["offset"]) for row in found} == exact
    assert len(found) == len(exact) == 180


def test_a_run_ends_after_its_batch_when_it_is_asked_to(spark: "SparkSession", orders: Orders) -> None:
    orders.produce(300)
    running = ingesting(orders.declared(), spark=spark, on_batch=lambda taken: running.stop())
    outcome = running.wait()
    assert outcome.was_stopped
    assert (outcome.batches, outcome.run.rows_in) == (1, 150)
    assert running.wait().was_stopped
    assert ingest(orders.declared(), spark=spark).batches == 1
    orders.check(spark)


def test_a_stop_in_the_last_batch_reports_that_everything_was_read(spark: "SparkSession", orders: Orders) -> None:
    orders.produce(100)
    running = ingesting(orders.declared(), spark=spark, on_batch=lambda taken: running.stop())
    assert running.query.awaitTermination(60)
    outcome = running.wait()
    assert (outcome.run.rows_in, outcome.was_stopped) == (100, False)
    again = running.wait()
    assert (again.run, again.table, again.was_stopped) == (outcome.run, outcome.table, False)


@pytest.mark.long
@pytest.mark.timeout(300)  # the first batch of a session takes a minute on a loaded machine
def test_an_interrupted_wait_leaves_no_query_that_writes_to_closed_tables(
    spark: "SparkSession", orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.produce(1500)
    began = threading.Event()
    running = ingesting(orders.declared(), spark=spark, on_batch=lambda taken: began.set())

    def interrupted() -> bool:
        assert began.wait(PATIENCE_S)
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "ended", interrupted)
    with pytest.raises(KeyboardInterrupt):
        running.wait()
    assert not running.query.isActive
    assert 0 < running.batches < 10
    ingest(orders.declared(source={"max_offsets_per_trigger": 1500}), spark=spark)
    orders.check(spark)


def test_a_folder_of_somebody_else_is_left_as_it_is(spark: "SparkSession", orders: Orders) -> None:
    (orders.folder / "table").mkdir()
    spark.range(3).write.parquet(str(orders.folder / "table" / "theirs"))
    with pytest.raises(StrandlineError, match="another program wrote them"):
        ingest(orders.declared(), spark=spark)
    assert [path.name for path in (orders.folder / "table").iterdir()] == ["theirs"]


def test_an_expectation_that_fails_ends_the_run_and_the_next_goes_on_from_there(
    spark: "SparkSession", orders: Orders
) -> None:
    orders.produce(300)
    strict = orders.declared() | {"expectations": [{"name": "few", "check": "id < 200", "action": "fail"}]}
    with pytest.raises(StrandlineError, match="rows do not meet the expectation 'few'"):
        ingest(strict, spark=spark)
    assert read_table(spark, "parquet", str(orders.folder / "table")).count() == 135
    ingest(orders.declared(), spark=spark)
    orders.check(spark)


TOML = """
name = "orders"
[source]
topic = "{topic}"
bootstrap = "{bootstrap}"
max_offsets_per_trigger = 600
[value]
format = "json"
columns = {{ id = "long not null", amount = "int", region = "string" }}
[transform]
sql = "SELECT topic, partition, offset, id, region, amount FROM source"
[sink]
table = "{table}"
partition_by = ["region"]
compaction = {{ every = 3 }}
"""


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command, in a process group of its own, which is gone afterwards."""
    running = subprocess.Popen(
        [sys.executable, "-m", "strandline", "pipeline", "ingest", *arguments, "--json", "--master", "local[2]"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield running
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()


def until_written(manifest: Path, lines: int, running: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not manifest.exists() or manifest.read_bytes().count(b"\n") < lines:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline, "it does not come on"
        time.sleep(0.002)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("kills", [1, 4])
@pytest.mark.long
def test_killed_again_and_again_every_record_is_in_the_table_once(
    kills: int, spark: "SparkSession", orders: Orders, capsys: pytest.CaptureFixture[str]
) -> None:
    records = 2400 if kills == 1 else 2400 + 1200 * kills  # some are left for the run that ends in good order
    orders.produce(records)
    file = orders.folder / "orders.toml"
    table = orders.folder / "table"
    file.write_text(TOML.format(topic=orders.topic, bootstrap=orders.bootstrap, table=table))
    manifest = table / FOLDER / NAME
    for kill in range(kills):
        with process(str(file)) as running:
            seen = manifest.read_bytes().count(b"\n") if manifest.exists() else 0
            until_written(manifest, seen + 2 + kill, running)
            # The process alone, or with its JVM and Spark's workers; between a batch's begin and commit, or behind it.
            os.kill(running.pid, signal.SIGKILL) if kill % 2 else os.killpg(running.pid, signal.SIGKILL)
    # One kill: the last run takes the session that is there, which saves the start of a JVM.
    output = ended_here(file, table, records, capsys) if kills == 1 else ended_process(file, table, records)
    hold(["pipeline", "ingest", "--json"], output)
    report = json.loads(output)
    assert report["stopped"]
    total = report["table"]
    assert (total["rows_in"], total["rows"], total["quarantined"], total["dense"]) == (
        records,
        records * 9 // 10,
        records // 10,
        True,
    )
    orders.check(spark)


def ended_process(file: Path, table: Path, records: int) -> str:
    """What a process prints that is asked to stop when everything is in the table."""
    with process(str(file), "--trigger", "100ms") as running:
        until_rows(table, records * 9 // 10, running)
        running.send_signal(signal.SIGTERM)
        output, complaints = running.communicate(timeout=PATIENCE_S)
        assert running.returncode == 0, complaints
    return output


def ended_here(file: Path, table: Path, records: int, capsys: pytest.CaptureFixture[str]) -> str:
    """The same of the command in this process, which gets the signal."""
    before = signal.getsignal(signal.SIGTERM)

    def stop() -> None:
        until_rows(table, records * 9 // 10)
        assert signal.getsignal(signal.SIGTERM) is not before, "nobody waits for the signal"
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    command(str(file), trigger="100ms", json_output=True)
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before
    return capsys.readouterr().out


def until_rows(table: Path, count: int, running: "subprocess.Popen[str] | None" = None) -> None:
    from strandline_spark.tables.manifest import read_state

    deadline = time.monotonic() + PATIENCE_S
    while sum(account.rows for account in read_state(str(table / FOLDER / NAME))[0].accounts.values()) < count:
        assert running is None or running.poll() is None, running.communicate()
        assert time.monotonic() < deadline, "it does not come on"
        time.sleep(0.05)


def test_the_command_says_what_it_did_and_what_is_wrong(
    spark: "SparkSession", orders: Orders, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.produce(100)
    flags: Callable[..., None] = lambda **more: command(  # noqa: E731
        topic=orders.topic,
        bootstrap=orders.bootstrap,
        table=str(orders.folder / "table"),
        columns="id long not null, amount int",
        **more,
    )
    with pytest.raises(SystemExit) as ended:
        flags(strict=True)
    assert ended.value.code == 2
    printed = capsys.readouterr().out
    assert "100 records read, 90 rows written, 10 quarantined in 1 batches" in printed
    assert "every offset is accounted for exactly once" in printed
    flags(json_output=True)
    printed = capsys.readouterr().out
    hold(["pipeline", "ingest", "--json"], printed)
    again = json.loads(printed)
    assert (again["rows_in"], again["table"]["rows"], again["table"]["dense"]) == (0, 90, True)
    with pytest.raises(SystemExit) as ended:
        flags(partition_by=["nothing"])
    assert ended.value.code == 1
    assert "cannot be partitioned by nothing: it has no such column" in capsys.readouterr().err
