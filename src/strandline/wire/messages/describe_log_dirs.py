"""DescribeLogDirs (key 35): a broker's log directories and the logs in them (KIP-113); null topics ask for all.

Version 5, which tells cordoned directories, is left out: there are none.
"""

from typing import Annotated

from strandline.wire.schema import Bool, Group, Int16, Int32, Int64, Message, Nullable, String, V, message


class DescribableLogDirTopic(Group, frozen=True):
    topic: String = ""
    partitions: tuple[Int32, ...] = ()


@message(key=35, kind="request", versions="1-4", flexible="2+")
class DescribeLogDirsRequest(Message, frozen=True):
    topics: Annotated[tuple[DescribableLogDirTopic, ...] | None, Nullable()] = ()


class DescribeLogDirsPartition(Group, frozen=True):
    partition_index: Int32 = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0  # behind the high watermark; of a future log, behind the current one's end
    is_future_key: Bool = False


class DescribeLogDirsTopic(Group, frozen=True):
    name: String = ""
    partitions: tuple[DescribeLogDirsPartition, ...] = ()


class DescribeLogDirsResult(Group, frozen=True):
    error_code: Int16 = 0
    log_dir: String = ""
    topics: tuple[DescribeLogDirsTopic, ...] = ()
    total_bytes: Annotated[Int64, V("4+")] = -1
    usable_bytes: Annotated[Int64, V("4+")] = -1


@message(key=35, kind="response", versions="1-4", flexible="2+")
class DescribeLogDirsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, V("3+")] = 0
    results: tuple[DescribeLogDirsResult, ...] = ()
