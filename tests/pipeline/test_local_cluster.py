"""Executors in processes of their own: what runs on one machine's threads runs on a Spark cluster, unchanged."""

import json
import subprocess
import sys
from pathlib import Path

from strandline.pipeline.campaign import store

MASTER = "local-cluster[2,1,1024]"


def test_a_campaign_runs_on_a_cluster_of_executors(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "strandline", "pipeline", "simulate", "--seeds", "18..19", "--block", "1"]
    told = subprocess.run(
        [*command, "--master", MASTER, "--out", str(tmp_path), "--json"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    summary = json.loads(told.stdout)
    assert (summary["seeds"], summary["ok"], summary["again"]) == (2, 2, 1)
    assert len(store.done(tmp_path)) == 3
