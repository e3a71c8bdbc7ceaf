"""What all tests share, those of Spark too: small clusters of real processes, each of them in one worker of pytest."""

import gc
from collections.abc import Generator
from typing import Any

import pytest
from tests.worlds import one_node, secured, three_nodes

from strandline.testing.local_cluster import LocalCluster, NodeProcess

__all__ = ["one_node", "secured", "three_nodes"]

NodeProcess.forks = True  # hundreds of nodes would import the same modules anew
gc.disable()  # while tests are collected: half a million objects stay, and looking at them takes a fifth of the time


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a cluster run in one worker, which starts it once; those with a Spark session run with that."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            shared = [
                name for name in ("three_nodes", "one_node", "secured") if name in getattr(item, "fixturenames", ())
            ]
            if shared:
                item.add_marker(pytest.mark.xdist_group(shared[0]))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what the nodes of the test's clusters logged last: the cluster is gone when somebody reads it."""
    report = yield
    if report.failed:
        found: dict[str, Any] = getattr(item, "funcargs", {})
        clusters = {id(value): value for value in found.values() if isinstance(value, LocalCluster)}
        for node in [node for cluster in clusters.values() for node in cluster.nodes]:
            report.sections.append((f"end of the log of node {node.node_id}", node.log_tail(40)))
    return report
