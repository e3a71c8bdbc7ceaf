"""Clients that ask for all records and read nothing do not fill a node's memory, and do not starve others."""

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cluster.driving import create
from tests.cluster.slow_readers import BATCH, TOPIC, fetch, fill, greedy_clients, memory_mib
from tests.receiving import receive

from strandline.testing.local_cluster import HOST, LocalCluster

BOUND_MIB = 64
CLIENTS = 40


@pytest.mark.cluster
def test_clients_that_read_nothing_hold_no_more_than_the_bound_and_others_are_served(tmp_path: Path) -> None:
    properties = {"strandline.queued.response.max.bytes": str(BOUND_MIB << 20)}
    with LocalCluster(tmp_path / "cluster", 1, properties=properties) as cluster, ExitStack() as connections:
        (node,) = cluster.nodes
        create(cluster, TOPIC)
        fill(node, TOPIC, 40)
        before = memory_mib(node, "VmRSS")
        greedy_clients(node, TOPIC, CLIENTS, connections)
        fill(node, TOPIC, 1)
        with socket.create_connection((HOST, node.port), timeout=60) as good:
            good.sendall(fetch(TOPIC))
            answer = receive(good, int.from_bytes(receive(good, 4), "big"))
        assert len(answer) > len(BATCH), "who reads gets records, if only a batch"
        held = memory_mib(node, "VmHWM") - before
        assert BOUND_MIB // 2 < held < 2 * BOUND_MIB, "without a bound it would be 40 MiB for each of 40 clients"
