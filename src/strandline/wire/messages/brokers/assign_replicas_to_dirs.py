"""AssignReplicasToDirs (key 73): a broker tells the controller which log directory holds each replica (KIP-858)."""

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import Group, Int16, Int32, Int64, Message, UuidField, message


class PartitionData(Group, frozen=True):
    partition_index: Int32 = 0


class TopicData(Group, frozen=True):
    topic_id: UuidField = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()


class DirectoryData(Group, frozen=True):
    id: UuidField = ZERO_UUID
    topics: tuple[TopicData, ...] = ()


@message(key=73, kind="request", versions="0", flexible="0+")
class AssignReplicasToDirsRequest(Message, frozen=True):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    directories: tuple[DirectoryData, ...] = ()


class PartitionDataResponse(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class TopicDataResponse(Group, frozen=True):
    topic_id: UuidField = ZERO_UUID
    partitions: tuple[PartitionDataResponse, ...] = ()


class DirectoryDataResponse(Group, frozen=True):
    id: UuidField = ZERO_UUID
    topics: tuple[TopicDataResponse, ...] = ()


@message(key=73, kind="response", versions="0", flexible="0+")
class AssignReplicasToDirsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    directories: tuple[DirectoryDataResponse, ...] = ()
