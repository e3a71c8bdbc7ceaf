"""DescribeLogDirs (key 35): a broker's log directories and the logs in them (KIP-113); null topics ask for all.

Two tagged fields are our own, and readers that do not know them skip them: who asks for followers is told by leaders
how far those are that are not in sync.
"""

from typing import Annotated

from strandline.wire.schema import Bool, Group, Int16, Int32, Int64, Message, Nullable, String, Tag, V, message


class DescribableLogDirTopic(Group, frozen=True):
    topic: String = ""
    partitions: tuple[Int32, ...] = ()


@message(key=35, kind="request", versions="1-5", flexible="2+")
class DescribeLogDirsRequest(Message, frozen=True):
    topics: Annotated[tuple[DescribableLogDirTopic, ...] | None, Nullable()] = ()
    with_followers: Annotated[Bool, V("2+"), Tag(10_000)] = False


class FollowerOutOfSync(Group, frozen=True):
    """By the follower's last fetch, in the leader's present epoch; −1 if there was none."""

    replica_id: Int32 = 0
    log_end_offset: Int64 = -1
    lag_records: Int64 = -1
    lag_bytes: Int64 = -1


class DescribeLogDirsPartition(Group, frozen=True):
    partition_index: Int32 = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0  # behind the high watermark; of a future log, behind the current one's end
    is_future_key: Bool = False
    followers: Annotated[tuple[FollowerOutOfSync, ...] | None, V("2+"), Nullable("2+"), Tag(10_000)] = None


class DescribeLogDirsTopic(Group, frozen=True):
    name: String = ""
    partitions: tuple[DescribeLogDirsPartition, ...] = ()


class DescribeLogDirsResult(Group, frozen=True):
    error_code: Int16 = 0
    log_dir: String = ""
    topics: tuple[DescribeLogDirsTopic, ...] = ()
    total_bytes: Annotated[Int64, V("4+")] = -1
    usable_bytes: Annotated[Int64, V("4+")] = -1
    is_cordoned: Annotated[Bool, V("5+")] = False


@message(key=35, kind="response", versions="1-5", flexible="2+")
class DescribeLogDirsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, V("3+")] = 0
    results: tuple[DescribeLogDirsResult, ...] = ()
