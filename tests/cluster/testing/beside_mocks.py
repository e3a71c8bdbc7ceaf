"""What a cluster for a test costs until the first acknowledged record, beside librdkafka's mock: time and memory.

    python -m tests.cluster.testing.beside_mocks [--runs 5]

Each run is a process of its own. Time begins when the libraries are imported. Memory is what the process has grown by,
with its threads, and all that its nodes have (PSS: shared pages count once).
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import Producer

from strandline.bench.usage import usage

KINDS = ("strandline, 3 nodes", "strandline, 1 node", "librdkafka's mock, 3 brokers")


def pss_mb(pid: int | str) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no Pss")


def write(producer: Producer, topic: str) -> None:
    errors = []
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0
    assert errors == [None], errors


def measure(kind: str) -> dict[str, float]:
    from strandline.testing import cluster
    from strandline.testing.nursery import nursery

    before, began = pss_mb("self"), time.monotonic()
    if kind.startswith("librdkafka"):
        producer = Producer({"test.mock.num.brokers": 3, "bootstrap.servers": "unused"})
        write(producer, "t")
        took, cpu = time.monotonic() - began, cpu_s()
        return {"s": took, "cpu_s": cpu, "mb": pss_mb("self") - before}
    with cluster(nodes=int(kind.split()[1])) as strandline:
        strandline.create_topic("t")
        write(Producer(strandline.client_config()), "t")
        took = time.monotonic() - began
        pids = [nursery().process.pid, *(node.pid for node in strandline.nodes.relayed)]
        memory = sum(map(pss_mb, pids)) + pss_mb("self") - before
        return {"s": took, "cpu_s": cpu_s(*pids), "mb": memory}


def cpu_s(*pids: int) -> float:
    """Of these processes and of this one, with its imports."""
    return sum(usage(pid).cpu_s for pid in (os.getpid(), *pids))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kind:
        print(json.dumps(measure(options.kind)))
        return 0
    for kind in KINDS:
        command = [sys.executable, "-m", "tests.cluster.testing.beside_mocks", "--kind", kind]
        runs = [
            json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(options.runs)
        ]
        shown = {
            name: f"{min(run[name] for run in runs):.2f}..{max(run[name] for run in runs):.2f}" for name in runs[0]
        }
        print(f"{kind}: {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
