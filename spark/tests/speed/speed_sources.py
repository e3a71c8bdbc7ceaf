"""How fast topics and replicas come into Spark: `python -m spark.tests.speed.speed_sources [RECORDS] [BYTES]`.

One node on this machine, four partitions, uncompressed records. Prints for each of several passes, the first of which
compiles and warms up: MB/s of what lies on the disk, and the CPU seconds by process.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import functions as F
from spark.tests.speed.speed_sink import cpu_seconds

from strandline.testing.local_cluster import LocalCluster
from strandline_spark.spark import session

PASSES = 5
PARTITIONS = 4


def main(records: int = 1_000_000, size: int = 1024) -> None:
    with tempfile.TemporaryDirectory() as folder, LocalCluster(Path(folder), 1) as nodes:
        fill(nodes.bootstrap, records, size)
        logs = list(nodes.nodes[0].data_path.glob("speed-*/*.log"))
        total = sum(path.stat().st_size for path in logs)
        print(f"{records:,} records of {size} bytes, {total / 1e6:.0f} MB in {len(logs)} files")
        spark = session("local[2]", app="speed of the sources")
        topic = (
            spark.read.format("strandline")
            .option("kafka.bootstrap.servers", nodes.bootstrap)
            .option("subscribe", "speed")
        )
        replica = spark.read.format("strandline-replica").option("subscribe", "speed")
        data = str(nodes.nodes[0].data_path)
        digest = F.expr("bit_xor(xxhash64(key, value, offset))")
        lean = "key binary, value binary, offset bigint"
        measure("topic, all columns, to noop", total, lambda: noop(topic.load()))
        measure("topic, key, value and offset, digest", total, lambda: topic.schema(lean).load().agg(digest).collect())
        batches = replica.option("level", "batch")
        measure(
            "replica, batches, counted by fault",
            total,
            lambda: batches.load(data).groupBy("fault").agg(F.sum("size")).collect(),
        )
        rows = spark.read.format("strandline-replica").option("subscribe", "speed").option("level", "record")
        measure("replica, records, key, value and offset, to noop", total, lambda: noop(rows.schema(lean).load(data)))
        spark.stop()


def fill(bootstrap: str, records: int, size: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("speed", PARTITIONS, 1)])["speed"].result()
    producer = Producer({"bootstrap.servers": bootstrap, "batch.size": 1_000_000, "linger.ms": 20})
    noise = os.urandom(4 * size)
    for number in range(records):
        value = noise[number % (3 * size) :][:size]
        while True:
            try:
                producer.produce("speed", value, b"%09d" % number, number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(120) == 0


def noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def measure(name: str, total: int, run: Callable[[], object]) -> None:
    for number in range(PASSES):
        before, began = cpu_seconds(), time.perf_counter()
        run()
        took = time.perf_counter() - began
        spent = {each: round(now - before.get(each, 0.0), 2) for each, now in cpu_seconds().items()}
        label = "warming up" if number == 0 else f"pass {number}"
        print(f"{name}: {label}: {total / took / 1e6:.0f} MB/s, CPU seconds {spent}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
