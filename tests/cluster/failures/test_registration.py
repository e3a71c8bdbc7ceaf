"""A broker that starts while there is no controller gives up in time, with a status that says so (KIP-631)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.driving import QUICK, active_controller

from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    properties = QUICK | {"initial.broker.registration.timeout.ms": "8000"}
    with LocalCluster(tmp_path, 3, properties=properties) as cluster:
        yield cluster


def test_a_broker_that_starts_without_a_controller_ends_and_starts_again_when_there_is_one(
    cluster: LocalCluster,
) -> None:
    active_controller(cluster)
    for node in cluster.nodes:
        node.kill()
    first = cluster.nodes[0]
    first.start()
    assert first.wait_stopped(60) == 1, "one voter of three is no quorum, so nobody takes its registration"
    for node in cluster.nodes:
        node.start()
    for node in cluster.nodes:
        node.wait_sees(3)
