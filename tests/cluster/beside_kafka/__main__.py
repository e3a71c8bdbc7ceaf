"""What security costs, beside Kafka: both systems on this machine, in alternation, by the same clients.

    KAFKA_TOOLS='/opt/kafka/libs/*' python -m tests.cluster.beside_kafka --rounds 3

Needs java, and in KAFKA_TOOLS a class path with Kafka's broker. Prints a line for each measurement, and then medians
and ratios: read only the ratios of one run. Processor time is that of all three nodes together.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.cluster.beside_kafka.sides import Side, admit, further_acls, kafka, load, strandline

from strandline.bench.connecting import measure_connections
from strandline.bench.load import LoadConfig, Measured, measure
from strandline.client.admin.acls import create_acls, delete_acls

RECORD_BYTES = 1024
LARGE, SMALL = 1_000_000, 2_200  # bytes of a batch; a small one has two records
RATE = 500  # records a second
THREADS = 4
DELETED_AT_ONCE = 200  # ACLs; Kafka compares each of the filters with all ACLs
WARM_UP_S = 1.0  # of each measurement of the first round
HANDSHAKES, LOGINS = "TLS handshakes", "SCRAM-SHA-512 logins"


class Figure(NamedTuple):
    value: float
    unit: str
    cpu: float  # milliseconds of the nodes' processors for each connection, megabyte or request
    more_is_better: bool = True


Measurement = Callable[[Side, float], Figure]


def used_ms(measured: Measured, count: float) -> float:
    return 1000 * sum(process.cpu_s for process in measured.processes) / max(count, 1e-9)


def loaded(side: Side, protocol: str, seconds: float, *, batch: int, rate: int) -> Measured:
    warm_up = seconds / 4
    linger = 5 if batch == LARGE else 0
    config = LoadConfig(RECORD_BYTES, "all", linger, batch, 1, 3, rate, seconds, warm_up, False, side.pids)
    return measure(side.config(protocol), config)


def throughput(protocol: str) -> Measurement:
    def take(side: Side, seconds: float) -> Figure:
        found = loaded(side, protocol, seconds, batch=LARGE, rate=0)
        return Figure(found.write_mb_s, "MB/s", used_ms(found, found.records * RECORD_BYTES / 1e6))

    return take


def latency(protocol: str) -> Measurement:
    def take(side: Side, seconds: float) -> Figure:
        found = loaded(side, protocol, seconds, batch=SMALL, rate=RATE)
        assert found.produce is not None
        return Figure(found.produce.percentiles[2], "ms, p99", used_ms(found, found.records), more_is_better=False)

    return take


def connections(protocol: str) -> Measurement:
    def take(side: Side, seconds: float) -> Figure:
        found = measure_connections(side.config(protocol), seconds, THREADS, side.pids)
        assert not found.errors, found.errors
        cpu = 1000 * sum(process.cpu_s for process in found.processes) / max(1, found.count)
        return Figure(found.per_second, "connections/s", cpu)

    return take


MEASUREMENTS: dict[str, Measurement] = {
    "write, PLAINTEXT": throughput("PLAINTEXT"),
    "write, SSL": throughput("SSL"),
    f"write {RATE} records/s, PLAINTEXT": latency("PLAINTEXT"),
    f"write {RATE} records/s, SSL": latency("SSL"),
    "connections, PLAINTEXT": connections("PLAINTEXT"),
    HANDSHAKES: connections("SSL"),
    LOGINS: connections("SASL_PLAINTEXT"),
}
WITH_ACLS = f"write {RATE} records/s, SASL_SSL, {{}} ACLs"


def run(sides: Sequence[Side], rounds: int, seconds: float, acls: int) -> dict[str, dict[str, list[Figure]]]:
    found: dict[str, dict[str, list[Figure]]] = defaultdict(lambda: defaultdict(list))

    def take(name: str, how: Measurement, is_counted: bool) -> None:
        for side in sides:
            figure = how(side, seconds if is_counted else WARM_UP_S)
            if is_counted:
                found[name][side.name].append(figure)
                row = {"what": name, "cluster": side.name, "load": load(), **figure._asdict()}
                print(json.dumps(row), file=sys.stderr, flush=True)

    for number in range(rounds + 1):  # the first warms the JVM up
        for name, how in MEASUREMENTS.items():
            take(name, how, number > 0)
        take(WITH_ACLS.format(1), latency("SASL_SSL"), number > 0)
        others = further_acls(acls)
        for side in sides:
            create_acls(side.config("PLAINTEXT"), others)
        take(WITH_ACLS.format(acls), latency("SASL_SSL"), number > 0)
        for side in sides:
            for first in range(0, acls, DELETED_AT_ONCE):
                delete_acls(side.config("PLAINTEXT"), others[first : first + DELETED_AT_ONCE])
    return found


def show(found: dict[str, dict[str, list[Figure]]]) -> None:
    for name, by_side in found.items():
        ours, theirs = by_side["Strandline"], by_side["Kafka"]
        for side, figures in by_side.items():
            values = ", ".join(f"{figure.value:.1f}" for figure in figures)
            cpu = median(figure.cpu for figure in figures)
            print(f"{name:36} {side:10} {values} {figures[0].unit}; {cpu:.3f} ms of processor each")
        ratio = median(a.value / b.value for a, b in zip(ours, theirs, strict=True))
        cpu_ratio = median(a.cpu / b.cpu for a, b in zip(ours, theirs, strict=True) if b.cpu)
        print(f"{name:36} ratio      {ratio:.2f}; of processor {cpu_ratio:.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5, help="of one measurement")
    parser.add_argument("--acls", type=int, default=10_000)
    options = parser.parse_args()
    class_path = os.environ.get("KAFKA_TOOLS", "")
    if not class_path:
        parser.error("KAFKA_TOOLS names no class path with Kafka's broker")
    with (
        tempfile.TemporaryDirectory() as folder,
        strandline(Path(folder) / "ours") as ours,
        kafka(Path(folder) / "kafka", class_path) as theirs,
    ):
        for side in (ours, theirs):
            admit(side)
        show(run((ours, theirs), options.rounds, options.seconds, options.acls))
    return 0


if __name__ == "__main__":
    sys.exit(main())
