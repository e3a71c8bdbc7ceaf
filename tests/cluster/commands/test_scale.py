"""`strandline bench scale` on real processes, with few partitions: every step is taken and every figure is there."""

import json
import subprocess
import sys

import pytest
from tests.printed import hold

OPTIONS = ("--partitions", "12", "--topics", "3", "--idle", "0.5", "--json")
STEPS = ("create", "write", "leaders", "restart", "controller", "restart_controller", "stop", "start", "delete")


@pytest.mark.long
@pytest.mark.timeout(180)
def test_many_partitions_are_measured_through_every_failure() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "strandline", "bench", "scale", *OPTIONS],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    hold(["bench", "scale", *OPTIONS], done.stdout)
    (measured,) = json.loads(done.stdout)["results"]
    assert (measured["partitions"], measured["topics"]) == (12, 3)
    for step in (
        "create",
        "write",
        "leaders",
        "restart",
        "controller",
        "restart_controller",
        "stop",
        "start",
        "delete",
    ):
        assert measured[step]["seconds"] > 0, step
    assert "start" in measured["restart"]["held"]
    assert 0 < measured["detected_s"] <= measured["leaders"]["seconds"] + 0.5  # two clocks, one of them of milliseconds
    assert measured["controller_s"] <= measured["controller"]["seconds"]
    assert measured["open_files"] >= 12 + 10
