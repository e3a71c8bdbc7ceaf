"""How many instructions one Produce and one Fetch cost a node: a figure that a busy machine does not move.

    python -m tests.cluster.instructions                        # this tree
    python -m tests.cluster.instructions --source OTHER_TREE    # another checkout, for before and after
    python -m tests.cluster.instructions --acls 10000           # with an authorizer that has so many ACLs

One node runs under valgrind's callgrind, which counts. A client sends the same request again and again, and waits for
each answer. A batch has 15 records of 1 KiB. "fetch" reads a batch that the node still has in memory, "cold" one from
the segment's file. Only what follows from a read of the connection counts, up to the write of the answer: a node that
is slow for other work on the machine sees more of its own timers in the same number of requests.
"""

import argparse
import json
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.driving import create
from tests.receiving import receive

from strandline.base.effects import ANONYMOUS
from strandline.client.ask import ask
from strandline.metadata.configs.node_configs import STANDARD_AUTHORIZER
from strandline.metadata.security.acls import AclOperation, AclPermission, PatternType, ResourceType
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess
from strandline.wire.batch import build
from strandline.wire.frame import encode_request
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.messages.security.create_acls import AclCreation, CreateAclsRequest

TOPIC = "counted"
BATCH = build([(0, None, bytes(1024), ())] * 15)
RECORDS = 15
WARM_UP = 300
READ = "__pyx_f_6uvloop_4loop___uv_stream_buffered_on_read"  # uvloop's: bytes have arrived on a connection
TOTAL = re.compile(r"^totals: (\d+)$", re.MULTILINE)
PROPERTIES = {  # a node that is fifty times as slow is not dead
    "broker.session.timeout.ms": "600000",
    "broker.heartbeat.interval.ms": "20000",
    "controller.quorum.election.timeout.ms": "60000",
    "controller.quorum.fetch.timeout.ms": "60000",
}
# A client that has not said who it is must first be able to create ACLs.
AUTHORIZER = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
ACLS_AT_ONCE = 500
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


class Counted(NodeProcess):
    """A node under callgrind, which counts only when it is told to."""

    @property
    def counts_path(self) -> Path:
        return self.folder / "callgrind.out"

    @property
    def command(self) -> list[str]:
        callgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--toggle-collect={READ}"]
        return [*callgrind, f"--callgrind-out-file={self.counts_path}", *super().command]

    @contextmanager
    def counting(self) -> Iterator[None]:
        self.control("-z")
        self.control("-i", "on")
        yield
        self.control("-i", "off")
        self.control("-d")

    def control(self, *words: str) -> None:
        subprocess.run(["callgrind_control", *words, str(self.pid)], check=True, capture_output=True)

    def counted(self, part: int) -> int:
        """Instructions of the so many-th time that it counted, from 1."""
        found = TOTAL.search(Path(f"{self.counts_path}.{part}").read_text())
        assert found, "callgrind wrote no total"
        assert int(found[1]), f"uvloop has no {READ}"
        return int(found[1])


def permit(node: NodeProcess, count: int) -> None:
    """As many ACLs, of which two permit what this client does. A third of the others are about prefixes."""
    creations = [
        creation(LITERAL, TOPIC, ANONYMOUS, operation) for operation in (AclOperation.READ, AclOperation.WRITE)
    ]
    for at in range(count - len(creations)):
        pattern, name = (LITERAL, f"topic-{at}") if at % 3 else (PREFIXED, f"team-{at}-"[: 6 + at % 5])
        creations.append(creation(pattern, name, f"User:u{at}", AclOperation.WRITE))
    for first in range(0, count, ACLS_AT_ONCE):
        request = CreateAclsRequest(creations=tuple(creations[first : first + ACLS_AT_ONCE]))
        answer = ask(HOST, node.port, request, 3, timeout_s=600)
        assert [row.error_code for row in answer.results] == [0] * len(request.creations)


def creation(pattern: PatternType, name: str, who: str, operation: AclOperation) -> AclCreation:
    kind, allow = ResourceType.TOPIC, AclPermission.ALLOW
    return AclCreation(kind, name, pattern, who, "*", operation, allow)


def produce() -> bytes:
    partition = PartitionProduceData(index=0, records=BATCH)
    topic = TopicProduceData(name=TOPIC, partition_data=(partition,))
    request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=(topic,))
    return b"".join(encode_request(request, 9, 1, "counting"))


def fetch(offset: int) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=len(BATCH))
    request = FetchRequest(
        max_wait_ms=0,
        max_bytes=len(BATCH),
        session_epoch=-1,
        topics=(FetchTopic(topic=TOPIC, partitions=(partition,)),),
    )
    return b"".join(encode_request(request, 11, 1, "counting"))


def send(connection: socket.socket, frames: list[bytes]) -> None:
    for frame in frames:
        connection.sendall(frame)
        receive(connection, int.from_bytes(receive(connection, 4), "big"))


def measure(folder: Path, source: Path, requests: int, acls: int) -> dict[str, int]:
    """Instructions a request."""
    cluster = LocalCluster(folder, 1, properties=PROPERTIES | (AUTHORIZER if acls else {}))
    node = Counted(1, cluster.nodes[0].folder, cluster.nodes[0].port, cluster.nodes[0].controller_port)
    node.environment = {"PYTHONPATH": str(source / "src")}
    cluster.nodes = [node]
    with cluster, socket.create_connection((HOST, node.port), timeout=600) as connection:
        create(cluster, TOPIC)
        if acls:
            permit(node, acls)
        written = (WARM_UP + requests) * RECORDS
        kinds = {
            "produce": [produce()] * requests,
            "fetch": [fetch(written - RECORDS)] * requests,
            "cold": [fetch(RECORDS * (i % WARM_UP)) for i in range(requests)],
        }
        for frames in kinds.values():
            send(connection, (frames * WARM_UP)[:WARM_UP])
            with node.counting():
                send(connection, frames)
        return {name: node.counted(part) // requests for part, name in enumerate(kinds, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[2], help="a checkout of Strandline")
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--acls", type=int, default=0, help="how many; 0: there is no authorizer")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder), options.source.resolve(), options.requests, options.acls)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
