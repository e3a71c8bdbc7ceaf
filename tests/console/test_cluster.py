"""The view of the cluster, in a browser: it is there, it is live, and it can be read."""

import pytest
from playwright.sync_api import Browser, expect
from tests.cluster.driving import create
from tests.console.browsing import PATIENCE_MS, Window, window

from strandline.console.serving import Serving
from strandline.testing.local_cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("console")]


def test_the_cluster_is_shown_and_a_killed_node_is_seen_without_a_reload(shown: Window, cluster: LocalCluster) -> None:
    create(cluster, "orders", 6)
    page = shown.page
    health = page.get_by_label("Health")
    expect(health).to_contain_text("Healthy: all 3 brokers run, and all 6 partitions have all their replicas in sync.")
    second = page.locator("[data-node='2']")
    expect(second).to_contain_text("running")
    page.evaluate("window.loadedOnce = true")
    cluster.node(2).kill()
    expect(health).to_contain_text("Broker 2 is fenced: the controller does not hear from it.")
    expect(second).to_contain_text("fenced")
    expect(second).to_contain_text("In sync0 of 6")
    cluster.node(2).start()
    cluster.node(2).wait_sees(3)
    expect(health).to_contain_text("Healthy: all 3 brokers run", timeout=3 * PATIENCE_MS)
    assert page.evaluate("window.loadedOnce"), "the page was loaded again"


@pytest.mark.parametrize("width", [1100, 360])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_hard_to_read_or_too_wide(browser: Browser, serving: Serving, width: int, dark: bool) -> None:
    with window(browser, serving, width, dark=dark) as shown:
        expect(shown.page.get_by_label("Health")).to_be_visible()
        assert shown.violations() == []
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.complaints == []


def test_light_and_dark_are_switched_and_stay_so(shown: Window) -> None:
    page = shown.page
    page.get_by_role("button", name="Switch between light and dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_view_that_is_left_and_opened_again_at_once_is_filled(shown: Window) -> None:
    page = shown.page
    health = page.get_by_label("Health")
    expect(health).to_be_visible()
    for _ in range(5):
        page.evaluate("location.hash = '#/partitions'; setTimeout(() => { location.hash = '#/cluster'; }, 0)")
        expect(page.get_by_role("heading", level=1)).to_have_text("Cluster")
        expect(health).to_be_visible()
    page.evaluate("location.hash = '#/cluster?again'")
    expect(health).to_be_visible()
