"""How fast a topic of a node on this machine becomes a table: `python -m spark.tests.speed.speed_ingest [EVENTS]`.

The command in a cold process, as a script starts it: its seconds, those of the query alone, events a second of it, and
the CPU seconds of the JVM, of Spark's Python workers and of the node.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from spark.tests.speed.speed_sink import cpu_seconds

from strandline.testing.local_cluster import LocalCluster

PARTITIONS = 4
COLUMNS = "id long not null, kind string, amount int, at double"


def main(events: int = 2_000_000) -> None:
    with tempfile.TemporaryDirectory() as folder, LocalCluster(Path(folder) / "cluster", 1) as nodes:
        admin = AdminClient({"bootstrap.servers": nodes.bootstrap})
        admin.create_topics([NewTopic("speed", PARTITIONS, 1)])["speed"].result()
        produce(nodes.bootstrap, events)
        flags = ["--topic", "speed", "--bootstrap", nodes.bootstrap, "--columns", COLUMNS, "--master", "local[2]"]
        for run in ("first", "second"):
            command = [sys.executable, "-m", "strandline", "pipeline", "ingest", *flags, "--json"]
            began = time.perf_counter()
            running = subprocess.Popen([*command, "--table", f"{folder}/{run}"], stdout=subprocess.PIPE, text=True)
            spent = watched(running)
            took = time.perf_counter() - began
            report = json.loads(running.stdout.read() if running.stdout is not None else "")
            assert report["rows_written"] == events
            rate = events / report["seconds"]
            print(
                f"{run}: {took:.1f} s, the query {report['seconds']:.1f} s: {rate:,.0f} events/s, CPU seconds {spent}"
            )


def produce(bootstrap: str, events: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 500_000})
    for at in range(events):
        value = b'{"id":%d,"kind":"view","amount":%d,"at":1700000000.125,"note":"%s"}' % (at, at % 1000, b"x" * 60)
        while True:
            try:
                producer.produce("speed", value)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()


def watched(running: "subprocess.Popen[str]") -> dict[str, float]:
    """The CPU seconds of all processes below this one, as far as they were seen."""
    before, most = cpu_seconds(), dict[str, float]()
    while running.poll() is None:
        for name, value in cpu_seconds().items():
            most[name] = max(most.get(name, 0.0), round(value - before.get(name, 0.0), 1))
        time.sleep(0.3)
    return most


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
