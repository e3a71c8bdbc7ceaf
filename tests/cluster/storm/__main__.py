"""A storm over three real nodes, drawn from a seed; then a judgement that shares no code with them.

    python -m tests.cluster.storm --seed 1 --minutes 60

SIGKILL, SIGSTOP and SIGCONT (leaders that come back when another one leads), restarts of all three, wiped disks, clock
jumps, elections and reassignments come while three idempotent producers of librdkafka write with acks=all and a group
of two consumers reads and commits. `faults.py` has the rule of what may fail at the same time, `checker.py` what must
hold. Ends with status 0 if it held, 1 if not, 2 if it was interrupted; no process stays behind.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.cluster.driving import create
from tests.cluster.storm.checker import Anomalies, Evidence, figures, judge
from tests.cluster.storm.clients import TOPIC, Observer, Reader, Worker, Writer
from tests.cluster.storm.cluster import NODES, PROPERTIES, StormCluster, Wrong, is_crash, until
from tests.cluster.storm.faults import HEAL_S, Faults
from tests.cluster.storm.reading import Unreadable, digest_of, epochs_in_files, read_from_files, read_over_network

PARTITIONS = 4
OFFSETS = ("__consumer_offsets", 3)
ROUND_S = 60.0
REPORT_S = 15.0


class Storm:
    def __init__(self, cluster: StormCluster, seed: int, per_second: float, say: Callable[[str], None]) -> None:
        self.cluster = cluster
        self.say = say
        self.evidence = Evidence(seed)
        self.rng = Random(seed)
        bootstrap = cluster.bootstrap
        self.writers = [Writer(n, bootstrap, self.evidence, PARTITIONS, per_second) for n in range(3)]
        self.readers = [Reader(n, bootstrap, self.evidence) for n in range(2)]
        self.hanging: list[Reader] = []  # what they were shown before still counts
        self.observer = Observer(bootstrap, self.evidence, PARTITIONS)
        self.faults = Faults(cluster, self.rng, self.writers, PARTITIONS, say)
        self.began = time.monotonic()

    @property
    def workers(self) -> list[Worker]:
        return [*self.writers, *self.readers, self.observer]

    def rage(self, seconds: float) -> None:
        for worker in self.workers:
            worker.thread.start()
        self.began = time.monotonic()
        self.faults.heal("before the storm")
        end, round_end, reported = self.began + seconds, time.monotonic() + ROUND_S, 0.0
        while time.monotonic() < end:
            self.faults.strike()
            time.sleep(self.rng.uniform(0, 3))
            if time.monotonic() > round_end:
                self.faults.heal("after a round")
                self.relieve()
                round_end = time.monotonic() + ROUND_S
            if time.monotonic() > reported + REPORT_S:
                reported = time.monotonic()
                self.progress()
            broken = [f"{worker.name} broke: {worker.broke!r}" for worker in self.workers if worker.broke]
            if broken:
                raise Wrong(broken[0])
        self.faults.heal("after the storm")

    def relieve(self) -> None:
        """Another reader in the place of each that hangs: should a broker be the cause, that one hangs too, and the
        group never commits all."""
        for at, reader in enumerate(self.readers):
            if reader.hangs:
                self.hanging.append(reader)
                self.readers[at] = Reader(
                    len(self.readers) + len(self.hanging) - 1, self.cluster.bootstrap, self.evidence
                )
                self.readers[at].thread.start()
                self.say(f"{reader.name} hangs in its client's commit, {self.readers[at].name} takes its place")

    def progress(self) -> None:
        acknowledged = sum(writer.acknowledged for writer in self.writers)
        faults = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.counts.items()))
        passed = time.monotonic() - self.began
        read = sum(reader.read for reader in [*self.readers, *self.hanging])
        self.say(f"{passed:6.0f} s: {acknowledged} acknowledged, {read} read; {faults}")

    def calm(self) -> None:
        """Writers end, the group reads to the end, replicas become equal; then all that is there is read."""
        self.stop(self.writers)
        self.faults.heal("after the last record")
        self.relieve()
        for partition in range(PARTITIONS):
            self.evidence.log[partition] = read_over_network(self.cluster.bootstrap, TOPIC, partition)
        why = until(self.why_not_all_committed, HEAL_S)
        if why:
            raise Wrong(why)
        self.stop([*self.readers, self.observer])
        until(self.why_not_equal, HEAL_S)  # what they are then is evidence

    def stop(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.thread.join(2 * HEAL_S)
            if isinstance(worker, Reader) and worker.hangs:
                self.hanging.append(worker)
            elif worker.thread.is_alive() or worker.broke:
                raise Wrong(f"{worker.name} does not end: {worker.broke!r}")

    def why_not_all_committed(self) -> str:
        ends = {p: records[-1][0] + 1 for p, records in self.evidence.log.items() if records}
        last = self.observer.last
        behind = {p: (last.get(p), end) for p, end in ends.items() if last.get(p, -1) < end}
        return f"the group has not committed all that is there: {behind}" if behind else ""

    def why_not_equal(self) -> str:
        for topic, partitions in ((TOPIC, PARTITIONS), OFFSETS):
            for partition in range(partitions):
                digests = {str(n.node_id): digest_of(n.data_path, topic, partition) for n in self.cluster.nodes}
                self.evidence.replicas[f"{topic}-{partition}"] = digests
        unequal = [name for name, digests in self.evidence.replicas.items() if len(set(digests.values())) > 1]
        return ", ".join(unequal)

    def read_files(self, found: Anomalies) -> None:
        """The same once more, from the files of each node and by other code."""
        for node in self.cluster.nodes:
            for partition, records in self.evidence.log.items():
                if read_from_files(node.data_path, TOPIC, partition) != records:
                    found.add("files and network differ", f"node {node.node_id}, {TOPIC}-{partition}")

    def verdict(self) -> dict[str, Any]:
        counts, writers = self.faults.counts, self.writers
        for partition in range(PARTITIONS):
            self.evidence.epochs[partition] = epochs_in_files(self.cluster.nodes[0].data_path, TOPIC, partition)
        found = judge(self.evidence)
        self.read_files(found)
        for writer in writers:
            for failure in writer.failures:
                found.add("a producer failed", failure)
            for failure in writer.fatal:
                found.add("a producer ended", failure)
        errors = self.cluster.errors()
        for line in [*self.faults.ended, *filter(is_crash, errors)]:
            found.add("a node ended by itself", line)
        return {
            "seed": self.evidence.seed,
            **figures(self.evidence),
            "producers": sum(writer.lives for writer in writers),
            "consumers that hung in a commit": len(self.hanging),
            "abandoned": sum(writer.abandoned for writer in writers),
            "kills": counts["kill"] + 3 * counts["kill all"] + counts["wiped"] + counts["wipe given up"],
            "stops": counts["stop"] + counts["zombie"],
            "restarts": counts["shutdown"],
            "restarts of all three": counts["kill all"] + counts["restart all"],
            "wipes": counts["wiped"],
            "jumps": counts["jump"],
            "elections and reassignments": counts["elect"] + counts["reassign"],
            "longest unavailability s": round(max(max(w.gaps_s.values(), default=0.0) for w in writers), 1),
            "longest healing s": round(self.faults.longest_heal_s, 1),
            "errors that nodes logged": len(errors),
            "of these the first": errors[:10],
            "anomalies": sum(found.counts.values()),
            "by kind": dict(found.counts),
            "examples": found.examples,
        }


class Interrupted(BaseException):
    """Somebody wants the storm to end."""


def interrupt(number: int, frame: object) -> None:
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # the nodes are ended now, whatever comes
    raise Interrupted


def run(seed: int, minutes: float, per_second: float, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    began = time.monotonic()
    with StormCluster(folder, NODES, properties=PROPERTIES) as cluster:
        create(cluster, TOPIC, PARTITIONS)
        storm = Storm(cluster, seed, per_second, say)
        storm.rage(60 * minutes)
        storm.calm()
        result = storm.verdict()
    return {**result, "minutes": round((time.monotonic() - began) / 60, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--rate", type=float, default=100, help="records a second of each of the three producers")
    parser.add_argument("--folder", type=Path, help="keep the nodes' folders here")
    parser.add_argument("--json", action="store_true", help="the verdict as JSON")
    options = parser.parse_args()
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, interrupt)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    scratch = options.folder or Path(tempfile.mkdtemp(prefix="storm-"))
    status = 1
    try:
        result = run(options.seed, options.minutes, options.rate, scratch, say)
        status = 1 if result["anomalies"] else 0
        print(json.dumps(result, indent=1) if options.json else report(result), flush=True)
    except (Wrong, Unreadable) as wrong:
        print(f"WRONG: {wrong} (seed {options.seed})", file=sys.stderr, flush=True)
    except Interrupted:
        print("interrupted: no verdict; no process is left", file=sys.stderr, flush=True)
        status = 2
    if status == 0 and options.folder is None:
        shutil.rmtree(scratch, ignore_errors=True)
    else:
        say(f"the nodes' folders are in {scratch}")
    return status


def report(result: dict[str, Any]) -> str:
    lines = [f"{name}: {value}" for name, value in result.items() if name not in ("examples", "by kind")]
    lines += result["examples"]
    verdict = "CLEAN: nothing acknowledged is lost, doubled or out of order" if not result["anomalies"] else "ANOMALIES"
    return "\n".join([*lines, f"{verdict} (seed {result['seed']}, {result['acknowledged']} acknowledged)"])


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a client's thread may wait for a node that is gone
