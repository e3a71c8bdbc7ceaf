"""What all tests share, those of Spark too: small clusters of real processes, each of them in one worker of pytest."""

import pytest
from tests.worlds import one_node, secured, three_nodes

__all__ = ["one_node", "secured", "three_nodes"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a cluster run in one worker, which starts it once; those with a Spark session run with that."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            shared = [
                name for name in ("three_nodes", "one_node", "secured") if name in getattr(item, "fixturenames", ())
            ]
            if shared:
                item.add_marker(pytest.mark.xdist_group(shared[0]))
