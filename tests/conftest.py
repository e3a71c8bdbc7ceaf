"""Options of the suite."""

from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="record what the code does today in the transcripts")


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """All tests of the pipeline on one worker, since each would start a JVM; the others wherever there is room."""
    from xdist.scheduler import LoadScopeScheduling

    class OneSession(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            needs_spark = nodeid.startswith("spark/tests/") and not nodeid.startswith("spark/tests/unit/")
            return "spark" if needs_spark else nodeid

    return OneSession(config, log)
