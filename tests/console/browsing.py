"""The console in a real browser: Debian's Chromium without a window, driven by playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from strandline.client.ask import config_of
from strandline.console.serving import Serving
from strandline.testing.local_cluster import LocalCluster

CHROMIUM = shutil.which("chromium")
WHY_NOT = "Chromium is not installed: apt-get install chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]  # root has no sandbox
PATIENCE_MS = 20_000
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def console_of(cluster: LocalCluster, allow_changes: bool = False) -> Iterator[Serving]:
    config = config_of(cluster.bootstrap, cluster.client)
    with Serving(config, f" --bootstrap-server {cluster.bootstrap}", allow_changes=allow_changes) as serving:
        yield serving


class Window:
    """A page of the console, and whatever the browser complained about in it."""

    def __init__(self, page: Page, serving: Serving) -> None:
        self.page = page
        self.serving = serving
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self.said)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(serving.url)

    def said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def violations(self) -> list[str]:
        """What axe-core calls serious or worse."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{rule['id']}: {node['html']} ({node['failureSummary']})"
            for rule in found
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"]
        ]

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.serving.url.partition('?')[0]}#/{path}")
        return self.page


@contextmanager
def window(
    browser: Browser, serving: Serving, width: int = 1100, height: int = 800, dark: bool = False
) -> Iterator[Window]:
    scheme = "dark" if dark else "light"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    try:
        yield Window(context.new_page(), serving)
    finally:
        context.close()
