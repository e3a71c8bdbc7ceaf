"""What thousands of partitions cost a browser: how long its tasks are, its memory, and the console's processor time.

    python -m tests.console.fluency --partitions 5000 --seconds 20

The cluster is made up, so that nothing but the console and the browser is measured. In each view the table is scrolled
through, sorted and filtered while rows change. Processor time is that of the page's main thread, and of this process,
which is the console and drives the browser; long tasks are by the clock, so a busy machine makes them longer.
"""

import argparse
import time
from collections.abc import Callable

from playwright.sync_api import Page, expect
from tests.console.browsing import Window, chromium, window
from tests.console.crowd import Crowd

from strandline.client.ask import config_of
from strandline.console.serving import Serving

OBSERVE = """
window.longTasks = [];
new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((entry) => entry.duration)))
  .observe({ type: "longtask", buffered: true });
"""


def scroll(page: Page, seconds: float) -> None:
    until = time.monotonic() + seconds
    grid = page.locator("div.grid")
    while time.monotonic() < until:
        grid.evaluate("(box) => { box.scrollTop = (box.scrollTop + 900) % (box.scrollHeight - box.clientHeight) }")
        page.wait_for_timeout(50)


def partitions(page: Page, seconds: float, rows: int) -> None:
    expect(page.locator(".filters")).to_contain_text(f"{rows:,} of {rows:,}")
    scroll(page, seconds / 2)
    for title in ("Leader", "Condition", "Partition"):
        page.locator(".grid thead button", has_text=title).click()
        page.wait_for_timeout(300)
    for text in ("topic-07", "topic", ""):
        page.get_by_label("Topic", exact=True).fill(text)
        page.wait_for_timeout(300)
    scroll(page, seconds / 2)


def cluster(page: Page, seconds: float, _: int) -> None:
    expect(page.get_by_label("Health")).to_contain_text("attention")
    page.wait_for_timeout(seconds * 1000)


def topics(page: Page, seconds: float, rows: int) -> None:
    """One with all partitions of its topic, which is a fiftieth of them."""
    expect(page.locator(".filters")).to_contain_text("50 of 50")
    for title in ("Size", "Records/s", "Topic"):
        page.locator(".grid thead button", has_text=title).click()
        page.wait_for_timeout(300)
    page.get_by_role("link", name="topic-07").click()
    expect(page.locator(".grid .row-link").first).to_be_visible()
    scroll(page, seconds)
    assert rows >= 50


def groups(page: Page, seconds: float, _: int) -> None:
    expect(page.locator(".filters")).to_contain_text("500 of 500")
    scroll(page, seconds / 2)
    for title in ("Lag", "Members", "Group"):
        page.locator(".grid thead button", has_text=title).click()
        page.wait_for_timeout(300)
    page.get_by_label("Group", exact=True).fill("group-123")
    page.get_by_role("link", name="group-123").click()
    scroll(page, seconds / 2)


VIEWS: dict[str, Callable[[Page, float, int], None]] = {
    "cluster": cluster,
    "partitions": partitions,
    "topics": topics,
    "groups": groups,
}
GROUPS = 500


def measure(shown: Window, view: str, seconds: float, rows: int) -> None:
    page = shown.open(view)
    session = page.context.new_cdp_session(page)
    session.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
    session.send("Performance.enable")
    session.send("HeapProfiler.collectGarbage")
    busy, server = metrics(session)["TaskDuration"], time.process_time()
    page.evaluate("window.longTasks.length = 0")
    began = time.monotonic()
    VIEWS[view](page, seconds, rows)
    took = time.monotonic() - began
    tasks: list[float] = page.evaluate("window.longTasks")
    busy = metrics(session)["TaskDuration"] - busy
    server = time.process_time() - server
    session.send("HeapProfiler.collectGarbage")
    heap = metrics(session)["JSHeapUsedSize"] / 2**20
    rows_in_page = page.locator("tr").count()
    longest = f"{len(tasks)} tasks above 50 ms, the longest {max(tasks, default=0):.0f} ms"
    print(
        f"{view}: {took:.0f} s, page {100 * busy / took:.1f} % of a core, {longest}, heap {heap:.1f} MiB,"
        f" {rows_in_page} rows in the page, this process {100 * server / took:.1f} % of a core"
    )


def metrics(session: object) -> dict[str, float]:
    found = session.send("Performance.getMetrics")["metrics"]  # type: ignore[attr-defined]  # playwright's session
    return {row["name"]: row["value"] for row in found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--views", nargs="+", default=list(VIEWS), choices=list(VIEWS))
    asked = parser.parse_args()
    crowd = Crowd(asked.partitions, GROUPS)
    with Serving(config_of("127.0.0.1:1"), sources=crowd.sources()) as serving, chromium() as browser:
        for view in asked.views:
            with window(browser, serving) as shown:
                shown.page.add_init_script(OBSERVE)
                shown.page.goto(serving.url)
                measure(shown, view, asked.seconds, asked.partitions)
                assert shown.complaints == [], shown.complaints


if __name__ == "__main__":
    main()
