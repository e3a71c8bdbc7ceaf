"""Nodes die, hang and come back while an acks=all producer works: nothing acknowledged is lost, replicas end equal."""

import pytest
from tests.cluster.driving import (
    active_controller,
    assert_nothing_lost,
    create,
    flowing,
    isr_of,
    leader_of,
    until,
)

from strandline.testing.local_cluster import LocalCluster, NodeProcess

pytestmark = pytest.mark.cluster


def the_leader(cluster: LocalCluster) -> NodeProcess:
    return cluster.node(leader_of(cluster, "t"))


def a_follower(cluster: LocalCluster) -> NodeProcess:
    """A follower of the partition, not the active controller if that can be."""
    leader, controller = leader_of(cluster, "t"), active_controller(cluster)
    others = [node for node in cluster.nodes if node.node_id != leader]
    return next((node for node in others if node is not controller), others[0])


def test_the_leader_a_follower_and_the_active_controller_are_killed_and_started_again(cluster: LocalCluster) -> None:
    create(cluster, "t")
    with flowing(cluster, "t") as flow:
        for victim in (the_leader, a_follower, active_controller):
            node = victim(cluster)
            node.kill()
            flow.progress(500)
            node.start()
            until(lambda node=node: node.node_id in isr_of(cluster, "t"), 30)
            flow.progress(500)
    assert_nothing_lost(cluster, "t", flow)


def test_all_nodes_are_killed_at_once_and_started_again(cluster: LocalCluster) -> None:
    create(cluster, "t")
    with flowing(cluster, "t") as flow:
        for node in cluster.nodes:
            node.kill()
        acknowledged = len(flow.acked)
        for node in cluster.nodes:
            node.start()
        until(lambda: len(flow.acked) > acknowledged + 500, 40)
    assert_nothing_lost(cluster, "t", flow)


def test_all_nodes_are_restarted_one_after_another_in_order(cluster: LocalCluster) -> None:
    create(cluster, "t")
    with flowing(cluster, "t") as flow:
        for node in cluster.nodes:
            node.terminate()
            assert node.wait_stopped() == 0
            node.start()
            until(lambda node=node: node.node_id in isr_of(cluster, "t"), 30)
            flow.progress()
    assert_nothing_lost(cluster, "t", flow)


def test_a_follower_that_hangs_leaves_the_isr_and_comes_back(cluster: LocalCluster) -> None:
    create(cluster, "t")
    with flowing(cluster, "t") as flow:
        node = a_follower(cluster)
        node.pause()
        until(lambda: node.node_id not in isr_of(cluster, "t"))
        flow.progress()
        node.resume()
        until(lambda: node.node_id in isr_of(cluster, "t"))
        flow.progress()
    assert_nothing_lost(cluster, "t", flow)
