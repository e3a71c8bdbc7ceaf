"""How large the replicas of all partitions are, as their brokers' log directories have them."""

from collections.abc import Mapping

from strandline.base.errors import error_of
from strandline.base.value import Value
from strandline.client.admin.partitions import Place
from strandline.client.brokers import BrokerAt, Silence, ask_each
from strandline.wire.messages.cluster.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse


class ReplicaSize(Value, frozen=True):
    """`offset_lag`: behind the high watermark; of a future log, behind the end of the current one."""

    broker: int
    size_bytes: int
    offset_lag: int
    log_dir: str
    is_future: bool = False


def replica_sizes(brokers: Mapping[int, BrokerAt]) -> tuple[dict[Place, tuple[ReplicaSize, ...]], dict[int, str]]:
    """By partition; and why some brokers did not say."""
    found: dict[Place, list[ReplicaSize]] = {}
    silent: dict[int, str] = {}
    asked = dict.fromkeys(brokers, DescribeLogDirsRequest(topics=None))
    for node, answer in ask_each(brokers, asked, None).items():
        if isinstance(answer, Silence):
            silent[node] = answer.why
        elif answer.error_code:
            silent[node] = f"refuses: {error_of(answer.error_code).name}"
        else:
            for at, size in sizes_in(node, answer):
                found.setdefault(at, []).append(size)
    return {at: tuple(rows) for at, rows in found.items()}, silent


def sizes_in(node: int, answer: DescribeLogDirsResponse) -> list[tuple[Place, ReplicaSize]]:
    return [
        (
            Place(topic.name, row.partition_index),
            ReplicaSize(node, row.partition_size, row.offset_lag, result.log_dir, row.is_future_key),
        )
        for result in answer.results
        for topic in result.topics
        for row in topic.partitions
    ]
