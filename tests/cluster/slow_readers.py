"""What a node holds in memory for clients that ask for as much as they can and read nothing: a figure in MiB.

python -m tests.cluster.slow_readers                        # this tree
python -m tests.cluster.slow_readers --source OTHER_TREE    # another checkout, for before and after
"""

import argparse
import re
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.cluster.driving import create
from tests.receiving import receive

from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess
from strandline.wire.batch import build
from strandline.wire.frame import encode_request
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPIC = "wanted"
MIB = 1024 * 1024
BATCH = build([(0, None, bytes(1000), ())] * 1000)
EVERYTHING = (1 << 31) - 1


def fill(node: NodeProcess, topic: str, size_mib: int) -> None:
    request = ProduceRequest(
        acks=-1,
        timeout_ms=60_000,
        topic_data=(TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=BATCH),)),),
    )
    frame = b"".join(encode_request(request, 9, 1, "filling"))
    with socket.create_connection((HOST, node.port), timeout=60) as connection:
        for _ in range(size_mib * MIB // len(BATCH)):
            connection.sendall(frame)
            receive(connection, int.from_bytes(receive(connection, 4), "big"))


def fetch(topic: str) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=EVERYTHING)
    request = FetchRequest(
        max_wait_ms=0,
        max_bytes=EVERYTHING,
        session_epoch=-1,
        topics=(FetchTopic(topic=topic, partitions=(partition,)),),
    )
    return b"".join(encode_request(request, 11, 1, "greedy"))


def memory_mib(node: NodeProcess, field: str) -> float:
    """VmRSS: what it has now; VmHWM: its most until now."""
    found = re.search(rf"^{field}:\s+(\d+) kB$", Path(f"/proc/{node.pid}/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) / 1024


def greedy_clients(node: NodeProcess, topic: str, count: int, connections: ExitStack) -> list[socket.socket]:
    """They read nothing. Each has its answer, or at least as much of it as the sockets take."""
    greedy = []
    for _ in range(count):
        connection = connections.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60)
        connection.connect((HOST, node.port))
        connection.sendall(fetch(topic))
        greedy.append(connection)
    for connection in greedy:
        connection.recv(1)
    return greedy


def measure(folder: Path, source: Path, count: int, properties: dict[str, str]) -> float:
    cluster = LocalCluster(folder, 1, properties=properties)
    (node,) = cluster.nodes
    node.environment = {"PYTHONPATH": str(source / "src")}
    with cluster, ExitStack() as connections:
        create(cluster, TOPIC)
        fill(node, TOPIC, 60)
        before = memory_mib(node, "VmRSS")
        greedy_clients(node, TOPIC, count, connections)
        time.sleep(1)
        return memory_mib(node, "VmHWM") - before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[2], help="a checkout of Strandline")
    parser.add_argument("--clients", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        held = measure(Path(folder), options.source.resolve(), options.clients, {})
    print(f"{options.clients} clients that read nothing: {held:.0f} MiB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
