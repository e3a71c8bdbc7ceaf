"""AssignReplicasToDirs: the controller is told where replicas lie, if that is not what metadata says (KIP-858).

One request in flight per broker, for at most `REPLICAS_MAX` replicas, retried until it is answered. What is sent is
the latest that is known of a replica, and an answer settles only what was sent (T41): a replica that has moved again
meanwhile is told again.
"""

from strandline.base.effects import Effect, ToController
from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, TopicIdPartition, Uuid
from strandline.base.time import Instant
from strandline.replica.hosted import Host
from strandline.replica.timers import Alarm
from strandline.wire.messages.assign_replicas_to_dirs import (
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
        self.asked: dict[TopicIdPartition, Uuid] = {}  # of the request in flight
        self.sequence = 0
        self.is_in_flight = False
        self.pause = Alarm(host.timers, lambda _: [])  # `Replicas` flushes after every step

    def lies(self, at: TopicIdPartition, directory: Uuid, known: Uuid) -> None:
        """A replica lies in this directory; metadata knows it in `known`."""
        if directory in (known, ZERO_UUID):
            self.wanted.pop(at, None)
        else:
            self.wanted[at] = directory

    def forget(self, at: TopicIdPartition) -> None:
        self.wanted.pop(at, None)

    def flush(self) -> list[Effect]:
        if not self.wanted or self.is_in_flight or not self.pause.done or self.host.cluster.broker_epoch < 0:
            return []
        self.asked = {}
        directories: dict[Uuid, dict[Uuid, list[PartitionData]]] = {}
        for at, directory in self.wanted.items():
            if len(self.asked) == REPLICAS_MAX:
                break
            self.asked[at] = directory
            rows = directories.setdefault(directory, {}).setdefault(at.topic_id, [])
            rows.append(PartitionData(partition_index=at.partition))
        self.is_in_flight = True
        self.sequence += 1
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
        token = ("replica", "assign", self.sequence)
        return [ToController(request, VERSION, self.host.config.alter_partition_timeout_ms, token)]

    def failed(self, now: Instant) -> None:
        """No answer, or a refusal of the whole: all of it is still wanted."""
        self.is_in_flight = False
        self.asked = {}
        self.back_off(now)

    def back_off(self, now: Instant) -> None:
        self.pause.set(now + self.host.config.alter_partition_retry_ms)

    def answered(self, response: AssignReplicasToDirsResponse, now: Instant) -> None:
        """A row is settled by success; and where this is no replica, for the controller is ahead of our metadata."""
        if response.error_code != ErrorCode.NONE:
            self.failed(now)
            return
        self.is_in_flight = False
        asked, self.asked = self.asked, {}
        settled = (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        for directory in response.directories:
            for topic in directory.topics:
                for row in topic.partitions:
                    at = TopicIdPartition(topic.topic_id, row.partition_index)
                    if row.error_code in settled and at in asked and self.wanted.get(at) == asked[at]:
                        del self.wanted[at]
        if any(self.wanted.get(at) == directory for at, directory in asked.items()):
            self.back_off(now)
