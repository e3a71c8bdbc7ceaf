"""ElectLeaders (key 43): elect the preferred leader, or an unclean one, now (KIP-460); null asks for all partitions.

Version 3 is KIP-966's, which Apache Kafka has not shipped: our own programs speak it with each other, and no client is
told of it. Its types of elections beyond Kafka's two have numbers of our own.
"""

from typing import Annotated

from strandline.wire.schema import (
    Group,
    Int8,
    Int16,
    Int32,
    Message,
    Nullable,
    NullableString,
    String,
    Tag,
    V,
    message,
)

PREFERRED, UNCLEAN = 0, 1
OWN_VERSION = 3
PARTITIONS_MAX = 1000  # of one election that asks replicas first (KIP-966); what is over is to be asked for again
DESIGNATION, LONGEST_LOG_BALANCED, LONGEST_LOG_AGGRESSIVE = 2, 3, 4  # from version 3 on


class TopicPartitions(Group, frozen=True):
    topic: String = ""
    partitions: tuple[Int32, ...] = ()
    designated_leaders: Annotated[tuple[Int32, ...] | None, V("3+"), Nullable("3+")] = None  # one for each partition


@message(key=43, kind="request", versions="0-3", flexible="2+")
class ElectLeadersRequest(Message, frozen=True):
    election_type: Annotated[Int8, V("1+")] = PREFERRED
    topic_partitions: Annotated[tuple[TopicPartitions, ...] | None, Nullable()] = ()
    timeout_ms: Int32 = 60_000
    asked_by: Annotated[String, V("3+"), Tag(10_000)] = ""  # as the node knows it that passes the request on


class PartitionResult(Group, frozen=True):
    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None


class ReplicaElectionResult(Group, frozen=True):
    topic: String = ""
    partition_result: tuple[PartitionResult, ...] = ()


@message(key=43, kind="response", versions="0-3", flexible="2+")
class ElectLeadersResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, V("1+")] = 0
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()
