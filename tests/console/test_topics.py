"""Topics in a browser: the table, one of them, its records, and a record that is written by hand."""

import io
import json

import fastavro
import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, expect
from tests.cluster.driving import create, quiet
from tests.console.browsing import Window

from strandline.testing.local_cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("console")]

SCHEMA = {
    "type": "record",
    "name": "Ware",
    "fields": [{"name": "name", "type": "string"}, {"name": "price", "type": "int"}],
}


def fill(cluster: LocalCluster) -> None:
    """Partition 0: JSON, with keys; partition 1: one record of Avro."""
    create(cluster, "wares", 2)
    producer = Producer(quiet(cluster.bootstrap, acks="all"))
    for number in range(60):
        value = json.dumps({"number": number, "html": "<img src=x onerror=alert(1)>"})
        producer.produce("wares", value, f"key-{number % 6}", partition=0, headers=[("trace", f"t{number}")])
    packed = io.BytesIO()
    fastavro.schemaless_writer(packed, SCHEMA, {"name": "tea", "price": 3})
    producer.produce("wares", packed.getvalue(), partition=1)
    assert producer.flush(20) == 0


def read(page: Page) -> None:
    page.get_by_role("button", name="Read", exact=True).click()


def test_a_topic_is_found_and_its_records_are_read_and_written(shown: Window, cluster: LocalCluster) -> None:
    fill(cluster)
    page = shown.open("topics")
    page.get_by_label("Topic", exact=True).fill("wares")
    expect(page.locator(".filters")).to_contain_text("1 of")
    page.get_by_role("link", name="wares").click()
    replicas = page.get_by_label("Partitions of wares").first
    expect(replicas.locator(".row-link")).to_have_count(2)
    expect(replicas).to_contain_text("KiB")
    expect(page.get_by_role("img", name="Records per second")).to_be_visible()

    page.get_by_role("link", name="Settings", exact=True).click()
    setting = page.get_by_role("row", name="min.insync.replicas")
    expect(setting).to_contain_text("set for all brokers")

    page.get_by_role("link", name="Records", exact=True).click()
    records = page.get_by_label("Records", exact=True)
    expect(records).to_contain_text("26 records; up to the end.")
    page.get_by_label("Partition", exact=True).fill("0")
    page.get_by_label("Key is").fill("key-3")
    page.get_by_label("From", exact=True).select_option("earliest")
    read(page)
    expect(records).to_contain_text("10 records; 60 examined; up to the end.")
    records.locator("summary").first.click()
    expect(records.locator("details[open]")).to_contain_text('"html": "<img src=x onerror=alert(1)>"')
    expect(records.locator("details[open]")).to_contain_text("trace")
    assert records.locator("img").count() == 0
    assert shown.violations() == []

    page.get_by_label("Key is").fill("")
    page.get_by_label("From", exact=True).select_option("offset")
    page.get_by_label("Offset", exact=True).fill("50")
    read(page)
    expect(records).to_contain_text("10 records; up to the end.")
    expect(records.locator("summary").first).to_contain_text("0:50")

    page.get_by_label("Partition", exact=True).fill("1")
    page.get_by_label("From", exact=True).select_option("latest")
    page.get_by_label("Values as", exact=True).first.select_option("avro")
    page.get_by_label("Avro schema, or a file of it").first.fill(json.dumps(SCHEMA))
    read(page)
    expect(records.locator("summary").first).to_contain_text('"name": "tea", "price": 3')

    page.get_by_role("button", name="Write a record").click()
    box = page.get_by_role("dialog")
    box.get_by_label("Value", exact=True).fill("by hand")
    box.get_by_label("Partition", exact=True).fill("1")
    box.get_by_role("button", name="Plan").click()
    expect(box).to_contain_text("A record with no key and a value of 7 bytes would be written to partition 1 of wares.")
    assert shown.violations() == []
    box.get_by_role("button", name="Write it").click()
    box.get_by_role("link", name="partition 1, offset 1").click()
    page.get_by_label("Values as", exact=True).first.select_option("text")
    read(page)
    expect(records).to_contain_text("by hand")
