"""Real processes: a voter's metadata log is cut while it is down. What it had committed is not lost with it."""

from pathlib import Path

from tests.cluster.driving import active_controller, create, partition_of, until

from strandline.quorum.metadata_log import DIRECTORY
from strandline.server.local_cluster import LocalCluster


def test_a_voter_whose_metadata_was_cut_waits_for_one_that_has_it(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 3) as cluster:
        first = active_controller(cluster)
        second, third = (node for node in cluster.nodes if node is not first)
        third.terminate()
        third.wait_stopped()
        create(cluster, "t", **{"min.insync.replicas": "1"})
        for node in (second, first):
            node.terminate()
            node.wait_stopped()
        segment = max((second.data_path / DIRECTORY).glob("*.log"))
        with segment.open("r+b") as file:
            file.truncate(segment.stat().st_size // 2)
        for node in (second, third):
            node.start()
        until(lambda: "this voter has lost what it promised: the metadata log ends at" in second.log_path.read_text())
        first.start()
        until(lambda: "this voter has what is committed again" in second.log_path.read_text())
        assert until(lambda: partition_of(cluster, "t")) is not None
