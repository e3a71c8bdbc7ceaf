"""Groups, moves, transactions, metrics and reports in a browser, each with what an operator does there."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from playwright.sync_api import Browser, expect
from tests.cluster.clients.test_transactions import producer_of, write
from tests.cluster.commands.test_transaction_commands import STRANGER, leave_open
from tests.cluster.driving import admin_of, create, leads, partition_of, quiet, until
from tests.console.browsing import Window, window

from strandline.client.admin.partitions import Place
from strandline.client.admin.replicas.reassignments import alter_moves
from strandline.client.ask import config_of
from strandline.client.cluster import Cluster
from strandline.console.serving import Serving
from strandline.sim.runs.run import RunResult
from strandline.testing.local_cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("console")]

RECORDS, READ = 30, 10


@pytest.fixture
def reader(cluster: LocalCluster) -> Iterator[Consumer]:
    """The member of group `readers`, which has committed a third of what there is."""
    create(cluster, "lines")
    producer = Producer(quiet(cluster.bootstrap, acks="all"))
    for number in range(RECORDS):
        producer.produce("lines", b"%d" % number)
    assert producer.flush(20) == 0
    settings = {"group_id": "readers", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = Consumer(quiet(cluster.bootstrap, **settings))
    consumer.subscribe(["lines"])
    until(lambda: isinstance(consumer.poll(0.2), Message))
    consumer.commit(offsets=[TopicPartition("lines", 0, READ)], asynchronous=False)
    yield consumer
    consumer.close()


def test_a_group_is_looked_at_and_its_offsets_are_reset(shown: Window, cluster: LocalCluster, reader: Consumer) -> None:
    page = shown.open("groups")
    page.get_by_label("Group", exact=True).fill("readers")
    row = page.get_by_label("Groups").first.get_by_role("row", name="readers")
    expect(row).to_contain_text("Stable")
    expect(row).to_contain_text(str(RECORDS - READ))
    page.get_by_role("link", name="readers").click()
    expect(page.get_by_label("Members", exact=True)).to_contain_text("rdkafka")
    expect(page.get_by_label("Partitions of readers").first).to_contain_text("lines-0")
    expect(page.get_by_role("img", name="Lag in offsets")).to_be_visible()
    assert shown.violations() == []

    page.get_by_role("button", name="Reset offsets").click()
    box = page.get_by_role("dialog")
    box.get_by_role("button", name="Plan").click()
    expect(box).to_contain_text("group 'readers' is Stable, and has 1 member")
    expect(box.get_by_role("button", name="Reset", exact=True)).to_have_count(0)
    reader.close()
    box.get_by_label("Reset", exact=True).select_option("shift-by")
    box.get_by_label("How far").fill("-4")
    box.get_by_role("button", name="Plan").click()
    expect(box).to_contain_text("reads 4 offsets again")
    assert shown.violations() == []
    box.get_by_role("button", name="Reset", exact=True).click()
    expect(box.get_by_label("What came of it").first).to_contain_text("reset")
    with Cluster(config_of(cluster.bootstrap)) as connected:
        assert connected.offset_fetch("readers")["lines", 0].offset == READ - 4
    box.get_by_role("button", name="Close").click()
    expect(page.get_by_label("Partitions of readers").first).to_contain_text(str(RECORDS - READ + 4))
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_label("Explanation")).to_contain_text("it has no members")


def test_a_move_is_followed_and_cancelled(shown: Window, cluster: LocalCluster) -> None:
    new = NewTopic("moved", 1, replica_assignment=[[1, 2]])
    admin = admin_of(cluster)
    admin.create_topics([new])["moved"].result(15)
    until(lambda: leads(cluster, "moved") == 1)
    cluster.node(3).pause()
    try:
        assert alter_moves(config_of(cluster.bootstrap), {Place("moved", 0): (1, 3)}) == {Place("moved", 0): None}
        page = shown.open("reassignments")
        row = page.get_by_role("row", name="moved-0")
        expect(row).to_contain_text("3")
        page.get_by_role("button", name="Cancel moved-0").click()
        box = page.get_by_role("dialog")
        expect(box).to_contain_text("moved-0 keeps the replicas of before: 1, 2.")
        box.get_by_role("button", name="Cancel the move").click()
        expect(box).to_contain_text("moved-0 does not move any more.")
        box.get_by_role("button", name="Close").click()
        expect(page.get_by_text("No partition is being reassigned.")).to_be_visible()
        state = partition_of(cluster, "moved", nodes=[cluster.node(1)])
        assert state is not None and list(state.replica_nodes) == [1, 2]
    finally:
        cluster.node(3).resume()
        cluster.node(3).wait_sees(3)


def test_transactions_are_listed_and_one_that_hangs_is_found(shown: Window, cluster: LocalCluster) -> None:
    create(cluster, "t", 2)
    producer = producer_of(cluster, "worker")
    producer.begin_transaction()
    write(producer, "t", "a")
    assert producer.flush(20) == 0
    leave_open(cluster, 1)
    page = shown.open("transactions")
    row = page.get_by_label("Transactional ids").first.get_by_role("row", name="worker")
    expect(row).to_contain_text("Ongoing")
    expect(row).to_contain_text("t-")
    page.get_by_label("Minutes without a write").fill("0")
    page.get_by_role("button", name="Find them").click()
    hanging = page.get_by_label("Hanging transactions")
    expect(hanging).to_contain_text(f"t-1: a transaction of producer {STRANGER} is open since offset")
    expect(hanging).to_contain_text("strandline transactions abort --topic t --partition 1")
    expect(hanging.locator(".finding")).to_have_count(1)
    assert shown.violations() == []
    producer.abort_transaction(20)
    expect(row).to_contain_text("CompleteAbort")


def test_metrics_of_all_nodes_are_plotted(shown: Window) -> None:
    page = shown.open("metrics")
    expect(page.get_by_role("img", name=re.compile("^partitions: node 1 .*, node 2 .*, node 3"))).to_be_visible()
    expect(page.get_by_role("img", name="ISR shrinks, per second: node 1")).to_be_visible()
    assert shown.violations() == []


def test_reports_are_opened_in_the_browser_alone(shown: Window, tmp_path: Path) -> None:
    page = shown.open("reports")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.url} {request.post_data}"))
    run = tmp_path / "sim.json"
    outcome = RunResult(7, "", "", "9d224b1f4bbc8629", 17_300, 18_345, 393, 1, ("0 n1 starts",), {"started": 13})
    run.write_bytes(msgspec.json.encode(outcome))
    page.get_by_label("Report", exact=True).set_input_files(run)
    expect(page.get_by_text("Seed 7: no law was broken")).to_be_visible()
    broken = msgspec.structs.replace(outcome, seed=8, check="L1: a record is gone")
    run.write_bytes(msgspec.json.encode(outcome) + b"\n" + msgspec.json.encode(broken))
    page.get_by_label("Report", exact=True).set_input_files(run)
    expect(page.get_by_text("1 run of 2 broke a law")).to_be_visible()
    expect(page.get_by_text("strandline sim --seed 8")).to_be_visible()
    finding = {"rule": "gap", "severity": "error", "topic": "t", "partition": 0, "broker": None, "offset": 5, "end": 7}
    audit = {"status": "findings", "verdict": "1 finding", "findings": [{**finding, "what": "a gap <b>here</b>"}]}
    run.write_text(
        json.dumps({**audit, "counts": {"gap": 1}, "totals": {}, "acknowledged": None, "unread": [], "losses": 0})
    )
    page.get_by_label("Report", exact=True).set_input_files(run)
    expect(page.get_by_text("a gap <b>here</b>")).to_be_visible()
    assert shown.violations() == []
    run.write_text("{}")
    page.get_by_label("Report", exact=True).set_input_files(run)
    expect(page.get_by_role("alert")).to_contain_text("it is neither a report of the simulator nor of an audit")
    assert not [text for text in sent if outcome.digest in text], "a report was sent somewhere"


def test_on_a_phone_in_the_dark_nothing_is_too_wide_or_hard_to_read(
    browser: Browser, serving: Serving, cluster: LocalCluster
) -> None:
    create(cluster, "phones")
    with window(browser, serving, 360, dark=True) as shown:
        for path, heading in (
            ("topics", "Topics"),
            ("topics/phones", "phones"),
            ("topics/phones/records", "phones"),
            ("topics/phones/settings", "phones"),
            ("groups", "Groups"),
            ("groups/none", "none"),
            ("reassignments", "Reassignments"),
            ("transactions", "Transactions"),
            ("metrics", "Metrics"),
            ("reports", "Reports"),
        ):
            page = shown.open(path)
            expect(page.get_by_role("heading", level=1)).to_have_text(heading)
            expect(page.get_by_text("Asking")).to_have_count(0)
            assert shown.violations() == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
        assert shown.complaints == []
