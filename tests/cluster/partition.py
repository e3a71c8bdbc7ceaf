"""Cuts between real nodes, one situation after another, under load, and what each must lead to.

    python -m tests.cluster.partition

It runs in namespaces (`netns.py`): there a cut is between two nodes, and clients reach both. At the end the histories
are judged as in `hour.py`. Ends with status 1 if something was wrong.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster.hour import NODES, PROPERTIES, Campaign, Wrong
from tests.cluster.network import netns

from strandline.client.ask import ask
from strandline.sim.clients.producer import Producer
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponsePartition


class Situations:
    def __init__(self, campaign: Campaign, wires: netns.Namespaces) -> None:
        self.campaign = campaign
        self.wires = wires

    def metadata_of(self, node: int) -> MetadataResponsePartition | None:
        """The first partition as one node knows it."""
        request = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),), allow_auto_topic_creation=False)
        place = self.campaign.cluster.places[node - 1]
        try:
            answer = ask(place.host, place.port, request, 12, timeout_s=1)
        except OSError:
            return None
        return next((row for row in answer.topics[0].partitions if row.partition_index == 0), None)

    def until(self, what: str, holds: Callable[[], bool], within_s: float = 30) -> None:
        end = time.monotonic() + within_s
        while not holds():
            if time.monotonic() > end:
                raise Wrong(f"not so within {within_s:.0f} s: {what}")
            time.sleep(0.05)

    def whole(self) -> tuple[int, int, int]:
        """The leader and the two others, once all three are in sync."""

        def is_whole() -> bool:
            partition = self.metadata_of(1)
            return partition is not None and len(partition.isr_nodes) == NODES and partition.leader_id > 0

        self.until("all replicas are in sync", is_whole)
        partition = self.metadata_of(1)
        assert partition is not None
        one, two = (node for node in self.wires.nodes if node != partition.leader_id)
        return partition.leader_id, one, two

    def heals(self) -> None:
        self.wires.heal()
        self.campaign.wait("clients make progress", self.campaign.progressing(self.campaign.progress()), 60)

    def controller(self) -> int:
        """The leader of the metadata quorum."""
        asked = PartitionData(partition_index=0)
        request = DescribeQuorumRequest(topics=(TopicData(topic_name="__cluster_metadata", partitions=(asked,)),))
        place = self.campaign.cluster.places[0]
        answer = ask(place.host, place.port, request, 1, timeout_s=3)
        return int(answer.topics[0].partitions[0].leader_id)

    def is_led_by(self, *nodes: int) -> Callable[[], bool]:
        """As these nodes themselves say."""

        def holds() -> bool:
            return any(
                reported is not None and reported.leader_id in nodes for reported in map(self.metadata_of, nodes)
            )

        return holds

    def acknowledged(self) -> dict[str, int]:
        """By acks=all."""
        writers = [client for workload in self.campaign.workloads for client in workload.writers]
        return {c.name: c.acked for c in writers if isinstance(c, Producer) and c.acks == -1}

    def producers_go_on(self) -> None:
        """Consumers may not: as long as a deposed leader answers them, they learn of the next one by chance."""
        before = self.acknowledged()
        self.until("producers go on", lambda: all(count > before[name] for name, count in self.acknowledged().items()))

    # --- the situations

    def a_leader_that_only_clients_reach_is_replaced(self, both: bool) -> None:
        """One way: what it sends is lost, so that it hears of all that it can do nothing about."""
        leader, one, two = self.whole()
        for other in (one, two):
            self.wires.cut(leader, other, both=both)
        self.until("another leads", self.is_led_by(one, two))
        self.producers_go_on()
        self.heals()

    def a_follower_that_its_leader_does_not_hear_leaves_the_isr_and_comes_back(self) -> None:
        """Not the controller: if that one does not reach the leader, it is the leader that goes."""
        leader, one, two = self.whole()
        if one == self.controller():
            one, two = two, one
        self.wires.cut(one, leader, both=False)

        def has_left() -> bool:
            partition = self.metadata_of(two)
            return partition is not None and one not in partition.isr_nodes

        self.until("it leaves the ISR", has_left)
        self.heals()
        self.whole()

    def two_nodes_that_do_not_see_each_other_do_not_stop_the_third(self) -> None:
        _, one, two = self.whole()
        self.wires.cut(one, two, both=True)
        self.campaign.injector.run(2)
        self.producers_go_on()
        self.heals()

    def nobody_reaches_anybody_and_nothing_is_acknowledged(self) -> None:
        self.whole()
        for a in self.wires.nodes:
            for b in self.wires.nodes:
                if a < b:
                    self.wires.cut(a, b, both=True)
        self.campaign.injector.run(1)
        before = self.acknowledged()
        self.campaign.injector.run(2)  # longer than the lag that would cost a replica its place: nobody agrees to that
        if self.acknowledged() != before:
            raise Wrong("acks=all was acknowledged by a leader that reaches nobody")
        self.heals()


def run(folder: Path) -> dict[str, object]:
    cluster = netns.NamespaceCluster(folder, NODES, PROPERTIES)
    with cluster:
        campaign = Campaign(cluster, cluster.wires, seed=1)
        campaign.begin()
        situations = Situations(campaign, cluster.wires)
        situations.a_leader_that_only_clients_reach_is_replaced(both=True)
        situations.a_leader_that_only_clients_reach_is_replaced(both=False)
        situations.a_follower_that_its_leader_does_not_hear_leaves_the_isr_and_comes_back()
        situations.two_nodes_that_do_not_see_each_other_do_not_stop_the_third()
        situations.nobody_reaches_anybody_and_nothing_is_acknowledged()
        return campaign.finish()


def main() -> int:
    if not netns.is_inside():
        inside = netns.enter([sys.executable, "-m", "tests.cluster.partition"])
        os.execvp(inside[0], inside)
    with tempfile.TemporaryDirectory(prefix="partition-") as folder:
        try:
            print(json.dumps(run(Path(folder)), indent=1))
        except Wrong as wrong:
            print(f"WRONG: {wrong}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
