"""The nodes of a storm, and what they say of themselves: who leads, who is in sync, how far the metadata quorum is."""

import shutil
import signal
import time
from collections.abc import Callable

from tests.cluster.driving import partition_of

from strandline.client.ask import ask
from strandline.server.clock import AHEAD_MS
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from strandline.wire.messages.topics.metadata import MetadataRequest

NODES = 3
PROPERTIES = {
    "auto.create.topics.enable": "false",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "controller.quorum.election.timeout.ms": "800",
    "controller.quorum.fetch.timeout.ms": "1500",
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "1000",
    "leader.imbalance.check.interval.seconds": "15",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "3",
    "replica.lag.time.max.ms": "1500",
    "log.segment.bytes": "1048576",  # so that there are several, with snapshots of producers between them
    "log.message.timestamp.after.max.ms": str(1 << 62),  # clocks jump by hours here
}
EXPECTED = (0, -signal.SIGKILL, -signal.SIGTERM)  # the last: it was asked to stop while it began to start
ERROR = " ERROR "
CRASHED = ("crashed", "cannot go on without")
QUORUM = DescribeQuorumRequest(
    topics=(TopicData(topic_name="__cluster_metadata", partitions=(PartitionData(partition_index=0),)),)
)


def is_crash(line: str) -> bool:
    return any(words in line for words in CRASHED)


class Wrong(Exception):
    """What must not be; the message says what."""


def until(why_not: Callable[[], str], within_s: float) -> str:
    """Wait until `why_not` says nothing; what it says in the end."""
    end = time.monotonic() + within_s
    while why := why_not():
        if time.monotonic() > end:
            return why
        time.sleep(0.05)
    return ""


class StormCluster(LocalCluster):
    def set_clock(self, node: NodeProcess, ahead_ms: int) -> None:
        """From the node's next start on: a node reads the machine's clock once, when it starts."""
        node.environment[AHEAD_MS] = str(ahead_ms)

    def others(self, node: NodeProcess) -> list[NodeProcess]:
        return [other for other in self.nodes if other is not node]

    def wipe(self, node: NodeProcess) -> None:
        """An empty, formatted disk: the records, the metadata log and the vote are gone."""
        assert not node.running
        shutil.rmtree(node.data_path)
        self.lay_out()

    def why_ended(self, node: NodeProcess) -> str:
        """Of a node that nobody killed and that was not asked to stop; empty if it was."""
        status = None if node.process is None else node.process.poll()
        return "" if status in (None, *EXPECTED) else f"node {node.node_id} ended with status {status}"

    def errors(self) -> list[str]:
        """What the nodes logged as errors, each with its node."""
        return [
            f"node {node.node_id}: {line}"
            for node in self.nodes
            for line in node.log_path.read_text(errors="replace").splitlines()
            if ERROR in line
        ]

    # --- what nodes say

    def why_not_in_sync(self, replicas: list[NodeProcess]) -> str:
        """Does each of `replicas` say that all of them are in sync in every partition, and that one of them leads?"""
        ids = [node.node_id for node in replicas]
        for node in replicas:
            try:
                answer = ask(HOST, node.port, MetadataRequest(topics=None), 12, timeout_s=1)
            except OSError as error:
                return f"node {node.node_id}: {str(error) or 'no answer'}"
            if not answer.topics:
                return f"node {node.node_id} knows no topic"
            for topic in answer.topics:
                for row in topic.partitions:
                    if row.leader_id not in ids or not set(ids) <= set(row.isr_nodes):
                        where = f"{topic.name}-{row.partition_index}"
                        return f"node {node.node_id}: {where} is led by {row.leader_id}, in sync {row.isr_nodes}"
        return ""

    def quorum_of(self, node: NodeProcess) -> tuple[int, int, int, dict[int, int]] | None:
        """Leader, epoch, high watermark and the voters' log ends, as the quorum's leader says; None from others."""
        try:
            answer = ask(HOST, node.port, QUORUM, 1, timeout_s=1)
        except OSError:
            return None
        if answer.error_code or not answer.topics or answer.topics[0].partitions[0].error_code:
            return None
        partition = answer.topics[0].partitions[0]
        ends = {voter.replica_id: voter.log_end_offset for voter in partition.current_voters}
        return partition.leader_id, partition.leader_epoch, partition.high_watermark, ends

    def why_no_quorum(self, voters: list[NodeProcess]) -> str:
        """Does one of `voters` lead the metadata quorum, and has each of them all that is committed?"""
        ids = [node.node_id for node in voters]
        reported = [answer for answer in map(self.quorum_of, voters) if answer is not None]
        if not reported:
            return "nobody leads the metadata quorum"
        leader, epoch, committed, ends = max(reported, key=lambda answer: answer[1])
        behind = [node_id for node_id in ids if ends.get(node_id, -1) < committed]
        if leader not in ids or behind:
            return f"metadata epoch {epoch}: led by {leader}, committed to {committed}, log ends {ends}"
        return ""

    def why_not_whole(self) -> str:
        for node in self.nodes:
            if not node.running:
                return f"node {node.node_id} does not run"
        return self.why_not_in_sync(self.nodes) or self.why_no_quorum(self.nodes)

    def leader_of(self, topic: str, partition: int) -> NodeProcess | None:
        state = partition_of(self, topic, partition)
        return self.node(state.leader_id) if state is not None and state.leader_id > 0 else None
