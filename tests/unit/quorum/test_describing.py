"""DescribeQuorum about anything but the metadata log."""

from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.quorum import describing
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData

NO_QUORUM: Any = None


def test_another_topic_is_unknown_partition_by_partition() -> None:
    asked = TopicData(topic_name="t", partitions=(PartitionData(0), PartitionData(3)))
    answer = describing.answer(NO_QUORUM, DescribeQuorumRequest(topics=(asked,)), Instant(0))
    assert answer.error_code == ErrorCode.NONE
    rows = [(p.partition_index, p.error_code) for p in answer.topics[0].partitions]
    assert rows == [(i, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for i in (0, 3)]
