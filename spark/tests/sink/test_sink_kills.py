"""The exactly-once sink in a real Spark, under SIGKILL of everything: on demand, since it starts Java twenty times."""

from pathlib import Path

import pytest
from spark.tests.sink import sink_kills


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_each_row_is_there_once_after_kills_of_workers_executors_drivers_and_nodes(tmp_path: Path) -> None:
    assert len((*sink_kills.ON_CLUSTER, *sink_kills.ON_DRIVER, *sink_kills.BATCH)) >= 20
    assert sink_kills.main(["--dir", str(tmp_path)]) == 0
