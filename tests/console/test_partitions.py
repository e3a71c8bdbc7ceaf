"""Partitions in a browser: the table, one of them, and an election by hand from its plan to the loss ledger."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from playwright.sync_api import Page, expect
from tests.cluster.commanding import strandline
from tests.cluster.driving import admin_of, create, isr_of, leads, partition_of, quiet, until
from tests.console.browsing import Window

from strandline.testing.local_cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("console")]


def produce(cluster: LocalCluster, topic: str, count: int) -> None:
    producer = Producer(quiet(cluster.bootstrap, acks="all"))
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(20) == 0


def cell(page: Page, partition: str, column: str) -> str:
    titles = page.locator(".grid thead th").all_inner_texts()
    at = next(index for index, title in enumerate(titles) if title.startswith(column))
    return page.locator(".grid tbody tr", has_text=partition).locator("td").nth(at).inner_text()


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
    """Broker 2 alone has the last five records, and is down; 3 has the ten before them."""
    topic = "lost"
    admin = admin_of(cluster)
    new = NewTopic(topic, 1, replica_assignment=[[2, 3]], config={"min.insync.replicas": "1"})
    admin.create_topics([new])[topic].result(15)
    until(lambda: leads(cluster, topic) == 2)
    produce(cluster, topic, 10)
    cluster.node(3).pause()
    until(lambda: isr_of(cluster, topic) == {2})
    produce(cluster, topic, 5)
    checkpoint = cluster.node(2).data_path / "replication-offset-checkpoint"
    until(lambda: f"{topic} 0 15\n" in checkpoint.read_text())
    cluster.node(2).kill()
    cluster.node(3).resume()

    def is_lost() -> bool:
        state = partition_of(cluster, topic)
        return state is not None and state.leader_id < 0 and tuple(state.offline_replicas) == (2,)

    until(is_lost, 40)
    yield topic
    cluster.node(2).start()
    until(lambda: isr_of(cluster, topic) == {2, 3}, 40)
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
