"""What the controller says: whether there is an active one, and what reassignments wait for."""

from collections.abc import Mapping, Sequence

from strandline.base.errors import ErrorCode
from strandline.client.admin.partitions import Place
from strandline.client.ask import Servers, ask_any
from strandline.client.brokers import BrokerAt, Silence, ask_each
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from strandline.wire.messages.topics.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

QUORUM_VERSION, LIST_VERSION = 1, 0


def has_active_controller(brokers: Mapping[int, BrokerAt]) -> bool:
    """Does any broker get through to one? That which has none to ask waits for one. If we may not ask, none is said to
    be missing."""
    topic = TopicData(topic_name="__cluster_metadata", partitions=(PartitionData(partition_index=0),))
    answers = ask_each(brokers, dict.fromkeys(brokers, DescribeQuorumRequest(topics=(topic,))), QUORUM_VERSION)
    heard = [answer for answer in answers.values() if not isinstance(answer, Silence)]
    if any(answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED for answer in heard):
        return True
    found = [answer for answer in heard if not answer.error_code]
    return any(row.leader_id >= 0 for answer in found for topic in answer.topics for row in topic.partitions)


def waits_for(bootstrap: Servers, places: Sequence[Place]) -> dict[Place, str | None]:
    if not places:
        return {}
    topics = tuple(
        ListPartitionReassignmentsTopics(
            name=name, partition_indexes=tuple(at.partition for at in places if at.topic == name)
        )
        for name in dict.fromkeys(at.topic for at in places)
    )
    answer = ask_any(bootstrap, ListPartitionReassignmentsRequest(topics=topics), LIST_VERSION)
    return {
        Place(topic.name, row.partition_index): row.waits_for for topic in answer.topics for row in topic.partitions
    }
