"""How fast rows go into a topic of a node on this machine: `python -m spark.tests.speed.speed_sink [ROWS] [BYTES]`.

Prints, for each of five runs after a first one that compiles and warms up, at least once and exactly once in turn: MB/s
of values, and the CPU seconds of the JVM, of Spark's Python workers and of the node, which say what two idle cores
could do when others use them too.
"""

import sys
import tempfile
import time
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient, NewTopic

from strandline.testing.local_cluster import LocalCluster
from strandline_spark.sink.options import AT_LEAST_ONCE, EXACTLY_ONCE
from strandline_spark.spark import session

RUNS = 6  # of each
PARTITIONS = 4
GUARANTEES = (AT_LEAST_ONCE, EXACTLY_ONCE)
PROPERTIES = {"transaction.two.phase.commit.enable": "true"}


def main(rows: int = 400_000, size: int = 1024) -> None:
    with tempfile.TemporaryDirectory() as folder, LocalCluster(Path(folder), 1, properties=PROPERTIES) as nodes:
        admin = AdminClient({"bootstrap.servers": nodes.bootstrap})
        admin.create_topics([NewTopic("speed", PARTITIONS, 1)])["speed"].result()
        spark = session("local[2]", app="speed of the sink")
        frame = spark.range(0, rows, 1, 2).selectExpr(f"repeat('x', {size}) value")
        writer = frame.write.format("strandline").option("kafka.bootstrap.servers", nodes.bootstrap)
        for run in range(2 * RUNS):
            guarantee = GUARANTEES[run % 2]
            before, began = cpu_seconds(), time.perf_counter()
            writer.options(topic="speed", deliveryGuarantee=guarantee).mode("append").save()
            took = time.perf_counter() - began
            spent = {name: round(value - before.get(name, 0.0), 2) for name, value in cpu_seconds().items()}
            what = guarantee if run > 1 else f"warming up ({guarantee})"
            print(f"{what}: {rows * size / took / 1e6:.0f} MB/s, CPU seconds {spent}")
        spark.stop()


def cpu_seconds() -> dict[str, float]:
    """Of the processes below this one, by what they are."""
    found: dict[str, float] = {}
    for process in psutil.Process().children(recursive=True):
        try:
            name = "node" if "node" in process.cmdline() else process.name()
            times = process.cpu_times()
        except psutil.Error:
            continue
        found[name] = found.get(name, 0.0) + times.user + times.system
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
