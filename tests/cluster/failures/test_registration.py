"""A broker that starts while there is no controller gives up in time, with a status that says so (KIP-631)."""

import pytest
from tests.cluster.driving import active_controller

from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster


def test_a_broker_that_starts_without_a_controller_ends_and_starts_again_when_there_is_one(
    cluster: LocalCluster,
) -> None:
    active_controller(cluster)
    for node in cluster.nodes:
        node.kill()
    first = cluster.nodes[0]
    patient = first.config_path.read_text()
    first.config_path.write_text(f"{patient}initial.broker.registration.timeout.ms=1500\n")
    first.start()
    assert first.wait_stopped(60) == 1, "one voter of three is no quorum, so nobody takes its registration"
    first.config_path.write_text(patient)
    for node in cluster.nodes:
        node.start()
    for node in cluster.nodes:
        node.wait_sees(3)
