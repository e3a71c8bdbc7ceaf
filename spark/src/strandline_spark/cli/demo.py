"""`strandline demo pipeline`: events become a table while a leader is killed, and the pipeline too; then the audit."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from confluent_kafka import KafkaException
from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from strandline.base.value import Value
from strandline.cli.connect import Json, fail
from strandline.cli.records.produce import acknowledgements
from strandline.cli.signals import interrupted_by_signals
from strandline.client.admin.topics import create_topic
from strandline.client.librdkafka import why
from strandline.demo.demonstration import folder_for, kept
from strandline.testing.local_cluster import LocalCluster, StartFailed
from strandline_spark.cli.demo_events import ShopWriter
from strandline_spark.cli.options import require_folder_of, require_spark, write_report
from strandline_spark.errors import StrandlineError

TOPIC = "shop"
NODES = 3
LEADER_DIES, INGEST_DIES, LEADER_IS_BACK = 0.35, 0.6, 0.7  # parts of the time of writing
FIRST_S = 1.0  # so many seconds' events before ingest has begun: with more, a slow machine would get ever more work
LOOK_S = 0.2
TELL_S = 30.0  # how often it is said what is waited for

DECLARATION = """\
# Events of a web shop become a table, one row for each; what is no event goes to shop_quarantine, with the reason.
name = "shop"

[source]
topic = "{topic}"
bootstrap = "{bootstrap}"
max_offsets_per_trigger = {batch}

[value]
format = "json"

[value.columns]
event_id = "long not null"
kind = "string not null"
user_id = "long not null"
product = "string"
quantity = "int"
amount_cents = "long"
country = "string"
at = "double"

[[expectations]]
name = "an order costs something"
check = "kind not in ('order', 'payment') or amount_cents > 0"

[sink]
table = "{table}"
partition_by = ["kind"]
quarantine = "{table}_quarantine"

[run]
checkpoint = "{table}_checkpoint"
"""

Place = tuple[int, int]  # partition and offset


class Moment(Value, frozen=True):
    at_s: float  # of the Unix epoch
    what: str


class Outcome(Value, frozen=True):
    acknowledged: int
    rows: int
    quarantined: int
    duplicates: int
    missing: int
    interruption_s: float  # the longest time without any acknowledgement
    moments: tuple[Moment, ...]
    written: dict[int, int]  # acknowledgements, by second
    batches: tuple[tuple[float, int], ...]  # of the table: when, and how many rows
    by_kind: dict[str, int]
    audit: dict[str, Any]
    audit_status: int

    @property
    def holds(self) -> bool:
        is_whole = self.acknowledged > 0 and not self.duplicates and not self.missing
        return is_whole and self.audit_status == 0


def pipeline_demo(
    *,
    seconds: float = 24.0,
    rate: int = 4000,
    partitions: int = 6,
    html: Annotated[Path, Parameter(help="where the page is put")] = Path("pipeline-demo.html"),
    dir: Annotated[Path | None, Parameter(help="keep cluster and tables here")] = None,  # noqa: A002  # the option's name
    json_output: Json = False,
) -> int:
    """Three nodes and a shop's events. `ingest` makes a table of them while the leader is killed (SIGKILL), and is
    killed itself; then `audit` looks through all replicas, and every acknowledged event is sought in the table.

    Parameters
    ----------
    seconds
        how long to write
    rate
        events a second
    partitions
        of the topic; the leader of the first one is killed
    """
    if seconds < 5 or rate < 1 or partitions < 1:
        fail("--seconds must be at least 5, --rate and --partitions positive", status=2)
    require_folder_of(html, "--html")
    require_spark()
    interrupted_by_signals()
    folder = folder_for(dir, "strandline-pipeline-")
    console = Console(stderr=json_output)
    try:
        with LocalCluster(folder / "cluster", NODES) as cluster:
            outcome = Play(cluster, folder, console, seconds, rate, partitions).run()
            cluster.stop()
    except StrandlineError as error:
        fail(error.problem, error.advice)
    except (KafkaException, StartFailed, OSError) as error:
        text = why(error) if isinstance(error, KafkaException) else str(error)
        fail(text, kept(folder))
    from strandline_spark.cli.demo_page import page

    write_report(html, page(outcome, rate))
    if json_output:
        print(json.dumps(as_json(outcome)))
    else:
        console.print(f"The audit of all replicas: {outcome.audit['verdict']}", soft_wrap=True)
        console.print(sentence(outcome), soft_wrap=True)
    if outcome.holds and dir is None:
        shutil.rmtree(folder)
    elif not outcome.holds:
        print(kept(folder), file=sys.stderr)
    return 0 if outcome.holds else 1


def sentence(outcome: Outcome) -> str:
    counts = f"{outcome.acknowledged:,} events acknowledged, {outcome.rows:,} rows in the table"
    return (
        f"{counts} and {outcome.quarantined:,} in quarantine, duplicates = {outcome.duplicates:,},"
        f" missing = {outcome.missing:,}"
    )


def as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "acknowledged": outcome.acknowledged,
        "rows": outcome.rows,
        "quarantined": outcome.quarantined,
        "duplicates": outcome.duplicates,
        "missing": outcome.missing,
        "interruption_s": round(outcome.interruption_s, 3),
        "audit": outcome.audit,
        "holds": outcome.holds,
    }


class Play:
    def __init__(
        self, cluster: LocalCluster, folder: Path, console: Console, seconds: float, rate: int, partitions: int
    ) -> None:
        self.cluster = cluster
        self.folder = folder
        self.console = console
        self.seconds = seconds
        self.rate = rate
        self.partitions = partitions
        self.table = folder / "shop"
        self.moments: list[Moment] = []
        self.progress = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True
        )
        self.line = self.progress.add_task("three nodes are up")

    def say(self, text: str, *, is_event: bool = False) -> None:
        self.progress.update(self.line, description=text)
        if not self.console.is_terminal:
            self.console.print(text, soft_wrap=True)
        if is_event:
            self.moments.append(Moment(time.time(), text))

    def run(self) -> Outcome:
        with self.progress:
            self.make_topic()
            acknowledged = self.folder / "acknowledged.jsonl"
            ingest = self.start_ingest("--trigger", "1s")
            try:
                with acknowledgements(str(acknowledged)) as noted:
                    writer = ShopWriter(self.cluster.bootstrap, TOPIC, self.rate, noted)
                    self.write(writer, ingest)
            finally:
                kill(ingest)
            self.say(f"{writer.acknowledged:,} events are acknowledged; ingest goes on where it was killed")
            self.finish_ingest()
            self.say("the audit reads all replicas")
            audit, status = self.audit(acknowledged)
        return self.judged(writer, acknowledged, audit, status)

    def make_topic(self) -> None:
        create_topic(self.cluster.bootstrap, TOPIC, self.partitions, NODES, {"min.insync.replicas": "2"})

    def write(self, writer: ShopWriter, ingest: "subprocess.Popen[bytes]") -> None:
        """Events at an even rate, through the death of a leader and that of the pipeline."""
        from strandline.demo.leader_kill import partition_states

        # What is killed before it has written anything shows nothing.
        self.say(f"writing {self.rate:,} events a second with acks=all; ingest starts")
        writer.write_until(time.monotonic() + FIRST_S)
        self.wait_for_ingest(writer, ingest)
        began = time.monotonic()
        writer.write_until(began + LEADER_DIES * self.seconds)
        victim = partition_states(self.cluster, topic=TOPIC)[0].leader
        self.cluster.node(victim).kill()
        self.say(f"node {victim}, a leader, is killed", is_event=True)
        writer.write_until(began + INGEST_DIES * self.seconds)
        self.refuse_end_of(ingest)
        kill(ingest)
        self.say("ingest is killed, wherever it was", is_event=True)
        writer.write_until(began + LEADER_IS_BACK * self.seconds)
        self.cluster.node(victim).start()
        self.say(f"node {victim} is started again", is_event=True)
        writer.write_until(began + self.seconds)
        writer.finish()

    def wait_for_ingest(self, writer: ShopWriter, ingest: "subprocess.Popen[bytes]") -> None:
        """Until the table has its first batch, however long a busy machine takes. Nothing is written meanwhile."""
        told = time.monotonic()
        while not self.batches():
            self.refuse_end_of(ingest)
            writer.rest(LOOK_S)
            if time.monotonic() - told >= TELL_S:
                told = time.monotonic()
                self.say("ingest has not written its first batch yet")

    def refuse_end_of(self, ingest: "subprocess.Popen[bytes]") -> None:
        if ingest.poll() is not None:
            raise StartFailed(f"ingest has ended by itself; its output:\n{self.ingest_log()}")

    def wait_for(self, job: "subprocess.Popen[Any]", progress: Callable[[], str]) -> int:
        """Its exit status: as long as it runs it is waited for. `progress`: what is said of it meanwhile."""
        while True:
            try:
                return job.wait(TELL_S)
            except subprocess.TimeoutExpired:
                self.say(progress())

    # --- jobs, as an operator starts them

    def start_ingest(self, *flags: str) -> "subprocess.Popen[bytes]":
        declaration = self.folder / "shop.toml"
        declaration.write_text(
            DECLARATION.format(
                topic=TOPIC, bootstrap=self.cluster.bootstrap, table=self.table, batch=max(1000, 4 * self.rate)
            )
        )
        with (self.folder / "ingest.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "strandline", "pipeline", "ingest", str(declaration), *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # its JVM and workers are killed with it
            )

    def ingest_log(self) -> str:
        return "\n".join((self.folder / "ingest.log").read_text(errors="replace").splitlines()[-20:])

    def finish_ingest(self) -> None:
        """Everything that is there, from where it was."""
        running = self.start_ingest()
        try:
            if self.wait_for(running, lambda: f"ingest goes on; {self.rows_written():,} rows are in the table") != 0:
                raise StartFailed(f"ingest failed; its output:\n{self.ingest_log()}")
        finally:
            kill(running)

    def audit(self, acknowledged: Path) -> tuple[dict[str, Any], int]:
        directories = [str(node.data_path) for node in self.cluster.nodes]
        flags = ["--bootstrap-server", self.cluster.bootstrap, "--acknowledged", str(acknowledged), "--json"]
        command = [sys.executable, "-m", "strandline", "pipeline", "audit", *directories, *flags]
        report, log = self.folder / "audit.json", self.folder / "audit.log"
        with report.open("wb") as out, log.open("wb") as errors:
            running = subprocess.Popen(command, stdout=out, stderr=errors, start_new_session=True)
        try:
            status = self.wait_for(running, lambda: "the audit still reads all replicas")
        finally:
            kill(running)
        text = report.read_text()
        if not text.startswith("{"):
            raise StartFailed(f"the audit failed:\n{log.read_text(errors='replace')}")
        return json.loads(text), status

    # --- what became of it

    def rows_written(self) -> int:
        return sum(rows for _, rows in self.batches())

    def batches(self) -> list[tuple[float, int]]:
        """When the table took a batch, and how many rows it had."""
        from strandline_spark.tables import manifest

        lines = manifest.read_lines(str(self.table / manifest.FOLDER / manifest.NAME))
        return [(line.time_ms / 1000, line.account.rows) for line, _ in lines if isinstance(line, manifest.Committed)]

    def judged(self, writer: ShopWriter, acknowledged: Path, audit: dict[str, Any], status: int) -> Outcome:
        """By means that have nothing to do with what wrote the table."""
        import pyarrow.dataset

        def places(folder: Path) -> list[Place]:
            if not folder.exists():
                return []
            rows = pyarrow.dataset.dataset(str(folder), format="parquet", partitioning="hive")
            found = rows.to_table(columns=["partition", "offset"]).to_pydict()
            return list(zip(found["partition"], found["offset"], strict=True))

        kinds = pyarrow.dataset.dataset(str(self.table), format="parquet", partitioning="hive").to_table(["kind"])
        by_kind = {row["values"]: row["counts"] for row in kinds["kind"].value_counts().to_pylist()}
        rows, quarantined = places(self.table), places(self.table.with_name("shop_quarantine"))
        there = {*rows, *quarantined}
        sought = [json.loads(line) for line in acknowledged.read_text().splitlines()]
        missing = sum((row["partition"], row["offset"]) not in there for row in sought)
        return Outcome(
            acknowledged=len(sought),
            rows=len(rows),
            quarantined=len(quarantined),
            duplicates=len(rows) + len(quarantined) - len(there),
            missing=missing,
            interruption_s=writer.silence_s,
            moments=tuple(self.moments),
            written=writer.by_second,
            batches=tuple(self.batches()),
            by_kind=dict(sorted(by_kind.items())),
            audit=audit,
            audit_status=status,
        )


def kill(process: "subprocess.Popen[bytes]") -> None:
    """The command, its JVM and its workers: SIGKILL."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
