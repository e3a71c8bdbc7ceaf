"""The plugin for pytest: the fixtures `strandline` and `strandline_cluster` (docs/testing.md).

Every session of pytest loads this file where strandline is installed, so it imports nothing before a test asks for a
cluster, and adds nothing to tests that do not.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from strandline.testing.apart import Session, TestCluster

MARK = "strandline(nodes=3, config=None, secure=False, exact_names=False): which cluster the fixture `strandline` is"
USED: pytest.StashKey[list["TestCluster"]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)


@pytest.fixture(scope="session")
def strandline_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Session"]:
    """All clusters of this session, or of this worker of pytest-xdist."""
    from strandline.testing.nursery import nursery

    nursery()  # it imports what nodes need while this process imports the rest
    from strandline.testing.apart import Session

    session = Session(tmp_path_factory.mktemp("strandline"))
    yield session
    session.close()


@pytest.fixture
def strandline_cluster(
    request: pytest.FixtureRequest, strandline_session: "Session"
) -> Iterator[Callable[..., "TestCluster"]]:
    """A factory: `strandline_cluster(nodes=1|3|5, config={…}, secure=…, exact_names=…)`. The same nodes serve all
    tests that ask for the same; names, faults, answers and captured requests are the test's own."""
    used: list[TestCluster] = []
    request.node.stash[USED] = used

    def make(
        nodes: int = 3, config: dict[str, Any] | None = None, secure: bool = False, exact_names: bool = False
    ) -> "TestCluster":
        used.append(
            strandline_session.cluster(
                request.node.name, nodes=nodes, config=config, secure=secure, exact_names=exact_names
            )
        )
        return used[-1]

    yield make
    with ExitStack() as leaving:  # one that cannot be healed is no reason to leave another one broken
        for cluster in used:
            leaving.callback(cluster.leave)


@pytest.fixture
def strandline(request: pytest.FixtureRequest, strandline_cluster: Callable[..., "TestCluster"]) -> "TestCluster":
    """Three nodes, or what the mark `strandline` says."""
    mark = request.node.get_closest_marker("strandline")
    return strandline_cluster(**(mark.kwargs if mark else {}))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what its nodes logged, and what is wrong with them."""
    report = yield
    if report.failed:
        for cluster in item.stash.get(USED, []):
            report.sections += cluster.sections()
    return report
