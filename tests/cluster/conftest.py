"""Clusters of real processes: one that all tests of a worker share, and one for each test that breaks it."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cluster.driving import QUICK, create

from strandline.testing.local_cluster import LocalCluster


@pytest.fixture(scope="session")
def shared_cluster(three_nodes: LocalCluster) -> LocalCluster:
    """Three nodes that no test stops, pauses or kills."""
    return three_nodes


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """Three nodes of the test's own."""
    with LocalCluster(tmp_path / "cluster", 3, properties=QUICK) as cluster:
        yield cluster


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[Callable[..., LocalCluster]]:
    """Three nodes of the test's own, with further properties."""
    with ExitStack() as clusters:

        def start(**properties: str) -> LocalCluster:
            named = {key.replace("_", "."): value for key, value in properties.items()}
            folder = tmp_path / "cluster"
            return clusters.enter_context(LocalCluster(folder, 3, properties={**QUICK, **named}))

        yield start


@pytest.fixture
def topic(shared_cluster: LocalCluster) -> str:
    """A new topic with one partition on all nodes of the shared cluster."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    create(shared_cluster, name)
    return name
