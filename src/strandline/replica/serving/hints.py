"""Where a partition is led instead, for answers that say "not here" (KIP-951)."""

from collections.abc import Iterable

from strandline.base.ids import NOBODY, NodeId, Uuid
from strandline.replica.hosting.host import Host

NO_HINT = (-1, -1)


class LeaderHints:
    def __init__(self, host: Host) -> None:
        self.host = host

    def leader_of(self, topic_id: Uuid, topic: str, index: int) -> tuple[int, int]:
        """The leader's id and epoch; −1 and −1 if there is none."""
        image = self.host.image
        found = image.topics.get(topic_id) or image.topic_named(topic)
        partition = None if found is None else found.partitions.get(index)
        if partition is None or partition.leader == NOBODY:
            return NO_HINT
        assert partition.leader_epoch >= 0
        return partition.leader, partition.leader_epoch

    def endpoints(self, nodes: Iterable[int], listener: str) -> list[tuple[int, str, int, str | None]]:
        """Node id, host, port, rack of those nodes that have the listener."""
        found = []
        for node in nodes:
            broker = self.host.image.brokers.get(NodeId(node))
            endpoint = None if broker is None else broker.endpoints.get(listener)
            if broker is not None and endpoint is not None:
                found.append((node, endpoint.host, endpoint.port, broker.rack))
        return found
