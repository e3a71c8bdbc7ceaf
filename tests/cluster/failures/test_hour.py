"""Short campaigns of `hour.py`, on machines of their own where there are namespaces, and behind proxies; and what cuts
between nodes lead to."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.network import netns
from tests.printed import hold

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]


def json_of(*command: str) -> dict[str, Any]:
    """What the program tells, if it found nothing wrong."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    hold(command[1:], done.stdout)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def needs_namespaces() -> None:
    why = netns.why_not()
    if why is not None:
        pytest.skip(why)


@pytest.mark.cluster
@pytest.mark.parametrize("network", ["namespaces", pytest.param("proxies", marks=pytest.mark.long)])
def test_processes_that_are_killed_paused_and_cut_off_lose_nothing(network: str) -> None:
    if network == "namespaces":
        needs_namespaces()
    found = json_of("tests.cluster.hour", "--seconds", "4", "--every", "0.3", "--seed", "5", "--network", network)
    assert found["anomalies"] == 0
    assert found["operations"] > 100


@pytest.mark.cluster
def test_a_network_partition_costs_no_record_and_stops_nobody_longer_than_it_must() -> None:
    """The situations one by one: see `partition.py`."""
    needs_namespaces()
    found = json_of("tests.cluster.partition")
    assert found["anomalies"] == 0
    assert found["operations"] > 100
