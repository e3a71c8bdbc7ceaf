"""How fast rows go into a topic of a node on this machine: `python -m spark.tests.speed.speed_sink [ROWS] [BYTES]`.

Prints, for each of five runs after a first one that compiles and warms up: MB/s of values, and the CPU seconds of the
JVM, of Spark's Python workers and of the node, which say what two idle cores could do when others use them too.
"""

import sys
import tempfile
import time
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient, NewTopic

from strandline.testing.local_cluster import LocalCluster
from strandline_spark.spark import session

RUNS = 6
PARTITIONS = 4


def main(rows: int = 400_000, size: int = 1024) -> None:
    with tempfile.TemporaryDirectory() as folder, LocalCluster(Path(folder), 1) as nodes:
        admin = AdminClient({"bootstrap.servers": nodes.bootstrap})
        admin.create_topics([NewTopic("speed", PARTITIONS, 1)])["speed"].result()
        spark = session("local[2]", app="speed of the sink")
        frame = spark.range(0, rows, 1, 2).selectExpr(f"repeat('x', {size}) value")
        writer = frame.write.format("strandline").option("kafka.bootstrap.servers", nodes.bootstrap)
        for run in range(RUNS):
            before, began = cpu_seconds(), time.perf_counter()
            writer.option("topic", "speed").mode("append").save()
            took = time.perf_counter() - began
            spent = {name: round(value - before.get(name, 0.0), 2) for name, value in cpu_seconds().items()}
            print(f"{run if run else 'warming up'}: {rows * size / took / 1e6:.0f} MB/s, CPU seconds {spent}")
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
