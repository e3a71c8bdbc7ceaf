"""Partitions in a browser: the table, one of them, and an election by hand from its plan to the loss ledger."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.cluster.commanding import strandline
from tests.cluster.driving import create, leads
from tests.console.browsing import Window
from tests.console.scenes import bring_back, lose_the_leader, produce

from strandline.testing.local_cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("console")]


def test_the_table_is_filtered_and_leads_to_one_partition_whose_bars_move(shown: Window, cluster: LocalCluster) -> None:
    create(cluster, "bars", 2)
    create(cluster, "others")
    page = shown.open("partitions")
    page.get_by_label("Topic", exact=True).fill("bars")
    expect(page.locator(".grid tbody .row-link")).to_have_count(2)
    assert shown.violations() == []
    page.get_by_role("link", name="bars-0").click()
    logs = page.get_by_label("Logs", exact=True)
    expect(logs.get_by_role("row")).to_have_count(4)
    expect(page.get_by_label("Explanation")).to_contain_text("Healthy: broker")
    expect(page.get_by_label("History")).to_contain_text("(first look)")
    produce(cluster, "bars", 7)
    for replica in (1, 2, 3):
        row = logs.get_by_role("row", name=f"Broker {replica}")
        expect(row.get_by_role("img")).to_have_attribute("aria-label", "log end 7, high watermark 7")
    assert shown.violations() == []


def test_the_arrow_keys_go_from_row_to_row_and_enter_opens_a_partition(shown: Window, cluster: LocalCluster) -> None:
    create(cluster, "keys", 40)
    page = shown.open("partitions?topic=keys")
    expect(page.locator(".filters")).to_contain_text("40 of")
    page.locator(".grid").focus()
    for _ in range(31):
        page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="keys-30")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("keys-30")


@pytest.fixture
def leaderless(cluster: LocalCluster) -> Iterator[str]:
    lose_the_leader(cluster, "lost")
    yield "lost"
    bring_back(cluster, "lost")
    assert strandline("losses", "--acknowledge", "--bootstrap-server", cluster.bootstrap).returncode == 0


def test_an_election_by_hand_goes_from_its_plan_over_a_confirmation_to_the_ledger(
    shown: Window, cluster: LocalCluster, leaderless: str
) -> None:
    page = shown.open("cluster")
    page.get_by_label("Health").get_by_role("link", name=f"1 partition has no leader ({leaderless}-0).").click()
    expect(page.locator(".grid tbody .row-link")).to_have_count(1)
    page.get_by_role("link", name=f"{leaderless}-0").click()
    explanation = page.get_by_label("Explanation")
    expect(explanation).to_contain_text("nobody leads")
    expect(explanation).to_contain_text("Way out: start broker 2")
    way = explanation.locator(".way", has_text="elect broker 3")
    expect(way).to_contain_text("It costs: ")
    assert shown.violations() == []
    way.get_by_role("button", name="Plan this election").click()
    box = page.get_by_role("dialog")
    expect(box).to_contain_text("broker 3 would lead")
    expect(box).to_contain_text("at most what was committed from offset 10 on")
    assert shown.violations() == []
    box.get_by_role("button", name="Elect").click()
    expect(box).to_contain_text("Type lost-0 to go on")
    assert leads(cluster, leaderless) == 0, "an election without its confirmation"
    box.get_by_role("textbox").fill("lost-0")
    box.get_by_role("button", name="Elect").click()
    expect(box).to_contain_text("broker 3 was elected, and leads in epoch")
    expect(box).to_contain_text("ledger: ")
    box.get_by_role("button", name="Close").click()
    expect(page.get_by_label("History")).to_contain_text("nobody led")
    expect(page.get_by_label("History")).to_contain_text("broker 3 led in epoch")
    assert leads(cluster, leaderless) == 3

    page = shown.open("losses")
    expect(page.get_by_label("Summary")).to_contain_text("The ledger has 1 entry; 1 not acknowledged.")
    expect(page.get_by_label("Summary")).to_contain_text("Broker 2 was not asked: it does not run")
    expect(page.get_by_label("Timeline")).to_contain_text("The cluster")
    page.get_by_role("link", name="lost-0").click()
    expect(page.get_by_label("Timeline")).to_contain_text("Partition lost-0")
    expect(page.get_by_label("Offsets").get_by_role("img")).to_have_attribute(
        "aria-label", "ranges of offsets of lost-0: at most what was committed from offset 10 on"
    )
    assert shown.violations() == []
    page.get_by_role("button", name="Acknowledge those of lost").click()
    expect(box).to_contain_text("at most what was committed from offset 10 on")
    box.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_label("Summary")).to_contain_text("The ledger has 1 entry; 0 not acknowledged.")
    expect(page.locator(".grid tbody tr", has_text="lost-0")).to_have_count(0)
    page.get_by_label("acknowledged ones too").check()
    expect(page.locator(".grid tbody tr", has_text="lost-0")).to_have_count(1)
