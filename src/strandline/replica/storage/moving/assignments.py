"""AssignReplicasToDirs: reports to the controller where replicas lie, if metadata says otherwise (KIP-858).

One request in flight per broker, for at most `REPLICAS_MAX` replicas, retried until it is answered. What is sent is
the latest that is known of a replica, and an answer is only about what was sent (T41): a replica that has moved
again meanwhile is reported again.
"""

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, TopicIdPartition, Uuid
from strandline.base.time import Instant
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.outbox import Outbox
from strandline.replica.tokens import AssignmentSent
from strandline.wire.messages.brokers.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)

VERSION = 0
REPLICAS_MAX = 2250


class Assignments:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.wanted: dict[TopicIdPartition, Uuid] = {}
        self.outbox = Outbox[Uuid](host, AssignmentSent, VERSION)

    def lies(self, at: TopicIdPartition, directory: Uuid, known: Uuid) -> None:
        """A replica lies in this directory; metadata knows it in `known`."""
        if directory in (known, ZERO_UUID):
            self.wanted.pop(at, None)
        else:
            self.wanted[at] = directory

    def forget(self, at: TopicIdPartition) -> None:
        self.wanted.pop(at, None)

    def flush(self) -> list[Effect]:
        if not self.wanted or not self.outbox.is_free or self.host.cluster.broker_epoch < 0:
            return []
        asked: dict[TopicIdPartition, Uuid] = {}
        directories: dict[Uuid, dict[Uuid, list[PartitionData]]] = {}
        for at, directory in self.wanted.items():
            if len(asked) == REPLICAS_MAX:
                break
            asked[at] = directory
            rows = directories.setdefault(directory, {}).setdefault(at.topic_id, [])
            rows.append(PartitionData(partition_index=at.partition))
        assert 0 < len(asked) <= REPLICAS_MAX
        request = AssignReplicasToDirsRequest(
            broker_id=self.host.me,
            broker_epoch=self.host.cluster.broker_epoch,
            directories=tuple(
                DirectoryData(
                    id=directory,
                    topics=tuple(TopicData(topic_id=topic, partitions=tuple(rows)) for topic, rows in topics.items()),
                )
                for directory, topics in directories.items()
            ),
        )
        return self.outbox.ask(request, asked)

    def failed(self, now: Instant) -> None:
        """No answer, or a refusal of the whole: all of it is still wanted."""
        self.outbox.take()
        self.outbox.back_off(now)

    def answered(self, response: AssignReplicasToDirsResponse, now: Instant) -> None:
        """A row is done after success, or if this is not a replica: the controller is ahead of our metadata."""
        if response.error_code != ErrorCode.NONE:
            self.failed(now)
            return
        asked = self.outbox.take()
        assert asked
        done = (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        for directory in response.directories:
            for topic in directory.topics:
                for row in topic.partitions:
                    at = TopicIdPartition(topic.topic_id, row.partition_index)
                    if row.error_code in done and at in asked and self.wanted.get(at) == asked[at]:
                        del self.wanted[at]
        if any(self.wanted.get(at) == directory for at, directory in asked.items()):
            self.outbox.back_off(now)
