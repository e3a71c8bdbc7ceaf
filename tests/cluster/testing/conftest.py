"""Clusters of the testing face: three nodes that its tests break and heal, and one node."""

from collections.abc import Iterator

import pytest

from strandline.testing import Cluster, cluster


@pytest.fixture(scope="session")
def breakable() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


@pytest.fixture
def strandline(breakable: Cluster) -> Iterator[Cluster]:
    """Whole at the beginning and at the end."""
    yield breakable
    breakable.heal()


@pytest.fixture(scope="session")
def single() -> Iterator[Cluster]:
    with cluster(nodes=1) as found:
        yield found


@pytest.fixture
def one(single: Cluster) -> Iterator[Cluster]:
    """One node; the test's requests and rules are its own."""
    found = Cluster(single.nodes)
    yield found
    found.end_rules()
