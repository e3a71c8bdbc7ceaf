"""The benches on real processes, for a moment each: every figure is there."""

import json
import sys
from pathlib import Path

import pytest
from tests.cluster.commanding import strandline
from tests.cluster.commands.test_up import port_of_many

from strandline.client.admin.topics import topic_names
from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster


def test_old_records_are_read_and_a_kill_interrupts_writes(cluster: LocalCluster) -> None:
    reached = ("--bootstrap-server", cluster.bootstrap)
    done = strandline("bench", "cold", "--megabytes", "3", "--seconds", "0.5", "--drop", "true", "--json", *reached)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["results"]
    assert found["read_mb_s"] > 0 and found["before"]["max"] > 0 and found["meanwhile"]["max"] > 0
    small = ("--megabytes", "1", "--seconds", "0.2", *reached)
    refused = strandline("bench", "cold", "--drop", "echo no >&2; false", *small)
    assert (refused.returncode, "the page cache was not dropped: no" in refused.stderr) == (1, True)

    quick = ("--seconds", "0.3", "--warmup", "0", "--partitions", "2", *reached)
    done = strandline("bench", "--consume", "--raw", "--json", *quick)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["results"]
    assert found["read_mb_s"] > 0 and found["records"] > 0
    refused = strandline("bench", "--raw", *quick)
    assert (refused.returncode, "--raw needs --consume" in refused.stderr) == (2, True)

    small_ones = ("--seconds", "0.3", "--warmup", "0", "--pids", str(cluster.nodes[0].pid))
    done = strandline("bench", "requests", *small_ones, "--json", *reached)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["results"]
    assert found["requests"] > 30, "more than were under way at first"
    assert found["latency"]["max"] > 0 and [used["pid"] for used in found["processes"]] == [cluster.nodes[0].pid]

    held = ("--seconds", "0.5", "--producers", "2", "--hold-ms", "50", "--json", *reached)
    done = strandline("bench", "transactions", *held)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["results"]
    assert 0 < found["commits_s"] <= 2 * 1000 / 50 and found["mb_s"] > 0 and found["commit_ms"] > 0

    kill = "case {id} in " + " ".join(f"{node.node_id}) kill -9 {node.pid};;" for node in cluster.nodes) + " esac"
    done = strandline("bench", "failover", kill, "--seconds", "5", "--rate", "200", "--json", *reached)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    assert measured["gap_s"] > 0 and 0 < measured["acknowledged"] <= measured["sent"]
    assert [node.node_id for node in cluster.nodes if not node.running] == [measured["leader"]]
    left = [name for name in topic_names(cluster.bootstrap) if name.startswith("strandline")]
    assert left == [], "what they have made is gone"


def test_a_start_is_measured_up_to_the_first_record(tmp_path: Path) -> None:
    port = port_of_many(3)
    command = f"{sys.executable} -m strandline up --nodes 1 --dir {tmp_path}/cluster --port {port}"
    one = ("--replication-factor", "1", "--bootstrap-server", f"127.0.0.1:{port}")
    done = strandline("bench", "start", command, "--json", *one)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["seconds"] > 0
    failed = strandline("bench", "start", "no-such-command", *one)
    assert (failed.returncode, "exit status 127" in failed.stderr) == (1, True)
    never = strandline("bench", "start", "true", "--limit", "0.5", *one)
    assert (never.returncode, "no record was acknowledged in 0 s" in never.stderr) == (1, True), "the first one is gone"
