"""Three nodes, a writer and the jobs of a pipeline, all killed in turn: what `strandline demo pipeline` runs.

A busy machine gets its time. Once the nodes are up, no step here has a time limit, and the work is bounded: nothing is
written while `ingest` starts, and the writer makes at most `rate` events a second for `seconds`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from strandline.cli.records.produce import acknowledgements
from strandline.client.admin.topics import create_topic
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.testing.local_cluster import LocalCluster, StartFailed
from strandline_spark.demo.events import ShopWriter
from strandline_spark.demo.result import Batch, DemoResult, Moment, count_events
from strandline_spark.errors import StrandlineError
from strandline_spark.tables import manifest

TOPIC = "shop"
LEADER_DIES, INGEST_DIES, LEADER_IS_BACK = 0.35, 0.6, 0.7  # parts of the time of writing
FIRST_S = 1.0  # seconds of events for the first batch of ingest
LOOK_S = 0.2
REPORT_S = 30.0  # how often a step that takes long is reported

DECLARATION = """\
# Events of a web shop become a table, one row for each; what is not an event goes to shop_quarantine, with the reason.
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


class PipelineDemo:
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
        self.line = self.progress.add_task(f"{len(cluster.nodes)} nodes are up")

    def say(self, text: str, *, is_event: bool = False) -> None:
        self.progress.update(self.line, description=text)
        if not self.console.is_terminal:
            self.console.print(text, soft_wrap=True)
        if is_event:
            self.moments.append(Moment(time.time(), text))

    def run(self) -> DemoResult:
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
        return DemoResult(
            counts=count_events(acknowledged, self.table, self.table.with_name(f"{self.table.name}_quarantine")),
            interruption_s=writer.silence_s,
            moments=tuple(self.moments),
            written=writer.by_second,
            batches=tuple(self.batches()),
            audit=audit,
            audit_status=status,
        )

    def make_topic(self) -> None:
        replicas = len(self.cluster.nodes)
        create_topic(self.cluster.bootstrap, TOPIC, self.partitions, replicas, {"min.insync.replicas": "2"})

    def write(self, writer: ShopWriter, ingest: "subprocess.Popen[bytes]") -> None:
        """Events at an even rate, through the death of a leader and that of the pipeline."""
        # Killing an ingest that has not written anything would show nothing.
        self.say(f"writing {self.rate:,} events a second with acks=all; ingest starts")
        writer.write_until(time.monotonic() + FIRST_S)
        self.wait_for_ingest(writer, ingest)
        began = time.monotonic()
        writer.write_until(began + LEADER_DIES * self.seconds)
        victim = self.leader(writer)
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

    def leader(self, writer: ShopWriter) -> int:
        """The leader of the first partition. A busy machine may have none for a while, or not answer in time."""
        with Cluster(ClientConfig.of({"kafka.bootstrap.servers": self.cluster.bootstrap})) as cluster:
            while True:
                with suppress(StrandlineError):
                    found = cluster.topics([TOPIC])[TOPIC].partitions[0].leader
                    if found in (node.node_id for node in self.cluster.nodes if node.running):
                        return found
                self.refuse_end_of_nodes()
                writer.rest(LOOK_S)

    def refuse_end_of_nodes(self) -> None:
        for node in self.cluster.nodes:
            if not node.running:
                raise StartFailed(f"node {node.node_id} has ended by itself; its log ends:\n{node.log_tail()}")

    def wait_for_ingest(self, writer: ShopWriter, ingest: "subprocess.Popen[bytes]") -> None:
        """Until the table has its first batch, however long a busy machine takes. Nothing is written meanwhile."""
        reported = time.monotonic()
        while not self.batches():
            self.refuse_end_of(ingest)
            writer.rest(LOOK_S)
            if time.monotonic() - reported >= REPORT_S:
                reported = time.monotonic()
                self.say("ingest has not written its first batch yet")

    def refuse_end_of(self, ingest: "subprocess.Popen[bytes]") -> None:
        if ingest.poll() is not None:
            raise StartFailed(f"ingest has ended by itself; its output:\n{self.ingest_log()}")

    def wait_for(self, job: "subprocess.Popen[Any]", progress: Callable[[], str]) -> int:
        """Its exit status, however long it runs. `progress`: what to report meanwhile."""
        while True:
            try:
                return job.wait(REPORT_S)
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

    def rows_written(self) -> int:
        return sum(batch.rows for batch in self.batches())

    def batches(self) -> list[Batch]:
        """The batches that the table has so far."""
        lines = manifest.read_lines(str(self.table / manifest.FOLDER / manifest.NAME))
        return [
            Batch(line.time_ms / 1000, line.account.rows) for line, _ in lines if isinstance(line, manifest.Committed)
        ]


def kill(process: "subprocess.Popen[bytes]") -> None:
    """The command, its JVM and its workers: SIGKILL."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
