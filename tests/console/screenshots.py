"""Pictures of each view for docs/console.md, of a real cluster in a real browser:

python -m tests.console.screenshots
"""

import json
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Consumer, Producer
from playwright.sync_api import Browser, expect
from tests.cluster.driving import create, quiet, until
from tests.console.browsing import CHROMIUM, WHY_NOT, Window, chromium, console_of, window
from tests.console.conftest import PROPERTIES
from tests.console.scenes import bring_back, lose_the_leader, produce

from strandline.console.serving import Serving
from strandline.testing.local_cluster import LocalCluster, free_ports

FOLDER = Path(__file__).parents[2] / "docs" / "console"
WIDTH, HEIGHT = 960, 640
SIZE_MAX = 150_000


def take(shown: Window, name: str) -> None:
    path = FOLDER / f"{name}.png"
    shown.page.screenshot(path=path)
    size = path.stat().st_size
    assert size <= SIZE_MAX, f"{path} has {size} bytes"
    print(f"{path.relative_to(FOLDER.parents[1])}: {size} bytes")


def healthy(shown: Window, cluster: LocalCluster) -> None:
    page = shown.open("cluster")
    expect(page.get_by_label("Health")).to_contain_text("Healthy")
    take(shown, "cluster")
    page = shown.open("partitions/orders/0")
    produce(cluster, "orders", 700)
    expect(page.get_by_label("Explanation")).to_contain_text("Healthy")
    expect(page.get_by_label("Logs", exact=True)).to_contain_text("700")
    page.wait_for_timeout(500)
    take(shown, "partition")


def without_a_leader(shown: Window) -> None:
    page = shown.open("partitions?show=leaderless")
    expect(page.locator(".grid tbody .row-link")).to_have_count(1)
    page.wait_for_timeout(1000)
    take(shown, "partitions")
    page.get_by_role("link", name="payments-0").click()
    explanation = page.get_by_label("Explanation")
    way = explanation.locator(".way", has_text="elect broker 3")
    way.scroll_into_view_if_needed()
    take(shown, "explained")
    way.get_by_role("button", name="Plan this election").click()
    box = page.get_by_role("dialog")
    box.get_by_role("textbox").fill("payments-0")
    take(shown, "election")
    box.get_by_role("button", name="Elect").click()
    expect(box).to_contain_text("was elected")


def losses(shown: Window) -> None:
    page = shown.open("losses?topic=payments&partition=0")
    expect(page.get_by_label("Offsets").get_by_role("img")).to_be_visible()
    take(shown, "losses")


def operations(shown: Window, cluster: LocalCluster) -> None:
    producer = Producer(quiet(cluster.bootstrap, acks="all"))
    create(cluster, "payments-by-card", 3)
    for number in range(60):
        value = json.dumps({"order": 4_200 + number, "amount": round(3.5 * number, 2), "currency": "EUR"})
        producer.produce("payments-by-card", value, f"customer-{number % 7}", headers=[("trace", f"{number:08x}")])
    assert producer.flush(20) == 0
    page = shown.open("topics/payments-by-card/records")
    records = page.get_by_label("Records", exact=True)
    expect(records).to_contain_text("up to the end")
    records.locator("summary").first.click()
    take(shown, "records")
    consumer = Consumer(quiet(cluster.bootstrap, group_id="billing", auto_offset_reset="earliest"))
    consumer.subscribe(["payments-by-card"])
    until(lambda: consumer.poll(0.2))
    page = shown.open("groups/billing")
    expect(page.get_by_label("Members", exact=True)).to_contain_text("rdkafka")
    for _ in range(4):
        consumer.consume(9, 1)
        consumer.commit(asynchronous=False)
        page.wait_for_timeout(2_500)
    take(shown, "group")
    consumer.close()
    page = shown.open("metrics")
    expect(page.get_by_role("img", name="records in, per second")).to_be_visible()
    page.wait_for_timeout(1_000)
    take(shown, "metrics")


def on_a_phone(browser: Browser, serving: Serving) -> None:
    with window(browser, serving, 360, 700, dark=True) as shown:
        shown.open("cluster")
        expect(shown.page.get_by_label("Health")).to_contain_text("acknowledged")
        take(shown, "phone")


def main() -> int:
    if CHROMIUM is None:
        print(WHY_NOT, file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        chromium() as browser,
        LocalCluster(Path(folder), 3, properties=PROPERTIES, metrics_ports=free_ports(3)) as cluster,
        console_of(cluster, allow_changes=True) as serving,
        window(browser, serving, WIDTH, HEIGHT) as shown,
    ):
        create(cluster, "orders", 6)
        healthy(shown, cluster)
        lose_the_leader(cluster, "payments")
        without_a_leader(shown)
        bring_back(cluster, "payments")
        losses(shown)
        operations(shown, cluster)
        on_a_phone(browser, serving)
    return 0


if __name__ == "__main__":
    sys.exit(main())
