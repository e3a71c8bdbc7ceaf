"""Real processes: a voter's metadata log is cut while it is down. What it had committed is not lost with it."""

from pathlib import Path

from tests.cluster.driving import active_controller, create, partition_of, until

from strandline.quorum.storage.metadata_log import DIRECTORY
from strandline.testing.local_cluster import LocalCluster
from strandline.wire.batch import batches, build


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


def test_a_voter_whose_log_has_a_record_that_cannot_be_applied_copies_it_again(tmp_path: Path) -> None:
    """In a batch whose checksum is right. It never crashed."""
    with LocalCluster(tmp_path, 3) as cluster:
        create(cluster, "t")
        voter = next(node for node in cluster.nodes if node is not active_controller(cluster))
        voter.terminate()
        voter.wait_stopped()
        segment = max((voter.data_path / DIRECTORY).glob("*.log"))
        content = segment.read_bytes()
        header = next(header for header in batches(content) if not header.is_control)
        drafts = [(header.max_timestamp, None, b"\x01\x7f\x00", ())] * header.record_count
        other = build(drafts, base_offset=header.base_offset, leader_epoch=header.partition_leader_epoch)
        segment.write_bytes(content[: header.position] + other + content[header.end :])
        voter.start()
        until(lambda: "this voter has what is committed again" in voter.log_path.read_text())
        reported = voter.log_path.read_text()
        assert f"the metadata record at offset {header.base_offset} cannot be applied" in reported
        assert "has another record there" in reported
        assert "Traceback" not in reported
        assert until(lambda: partition_of(cluster, "t")) is not None
