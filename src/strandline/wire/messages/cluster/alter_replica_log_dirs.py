"""AlterReplicaLogDirs (key 34): move a broker's replicas to another of its log directories (KIP-113)."""

from strandline.wire.schema import Group, Int16, Int32, Message, String, message


class AlterReplicaLogDirTopic(Group, frozen=True):
    name: String = ""
    partitions: tuple[Int32, ...] = ()


class AlterReplicaLogDir(Group, frozen=True):
    path: String = ""
    topics: tuple[AlterReplicaLogDirTopic, ...] = ()


@message(key=34, kind="request", versions="1-2", flexible="2+")
class AlterReplicaLogDirsRequest(Message, frozen=True):
    dirs: tuple[AlterReplicaLogDir, ...] = ()


class AlterReplicaLogDirPartitionResult(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class AlterReplicaLogDirTopicResult(Group, frozen=True):
    topic_name: String = ""
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = ()


@message(key=34, kind="response", versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    results: tuple[AlterReplicaLogDirTopicResult, ...] = ()
