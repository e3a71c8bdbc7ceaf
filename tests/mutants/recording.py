"""A plugin of pytest: writes down what became of each test, for `running`."""

import json
import os
from pathlib import Path

import pytest

OUTCOMES = "STRANDLINE_MUTANT_OUTCOMES"


class Recording:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, str] = {}
        self.broken: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.found[report.nodeid] = "failed"
        elif report.when == "call":
            self.found.setdefault(report.nodeid, report.outcome)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.broken.append(str(report.longrepr))

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps({"tests": self.found, "broken": self.broken}))


def pytest_configure(config: pytest.Config) -> None:
    path = os.environ.get(OUTCOMES)
    if path:
        config.pluginmanager.register(Recording(Path(path)))
