"""One cluster, one console and one browser for all tests of this folder."""

from collections.abc import Iterator

import pytest
from tests.worlds import QUICK

from strandline.testing.local_cluster import LocalCluster, free_ports

pytest.importorskip("playwright", reason="playwright is not installed: make setup")

from playwright.sync_api import Browser  # it may not be installed
from tests.console.browsing import CHROMIUM, WHY_NOT, Window, chromium, console_of, window  # as above

from strandline.console.serving import Serving  # as above

PROPERTIES = {
    **QUICK,
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "transaction.partition.verification.enable": "false",  # so that a transaction can hang
}


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """It keeps an event loop in this thread: no test of another folder could run one while it is open."""
    if CHROMIUM is None:
        pytest.skip(WHY_NOT)
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def cluster(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three nodes, which tests stop and start again."""
    folder = tmp_path_factory.mktemp("console")
    with LocalCluster(folder, 3, properties=PROPERTIES, metrics_ports=free_ports(3)) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def serving(cluster: LocalCluster) -> Iterator[Serving]:
    """A console that may change the cluster."""
    with console_of(cluster, allow_changes=True) as serving:
        yield serving


@pytest.fixture
def shown(browser: Browser, serving: Serving) -> Iterator[Window]:
    """A page of its own. Whatever the browser complains about in it fails the test."""
    with window(browser, serving) as shown:
        yield shown
        assert shown.complaints == []
