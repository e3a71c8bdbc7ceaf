"""What an answer says to a client, row by row: an error code, and the rights that somebody needs for what was asked.

As Kafka's documentation has them (Authorization and ACLs, "Protocols"), and nothing of the gate's own tables.
"""

from collections.abc import Callable, Iterator
from typing import Any

from strandline.metadata.security.acls import AclOperation as Op
from strandline.metadata.security.acls import ResourceType
from strandline.sim.laws.clients.naive import ANY, Need, on_cluster, on_group, on_id, on_topic
from strandline.wire.messages.cluster.alter_configs import AlterConfigsResponse
from strandline.wire.messages.cluster.describe_configs import DescribeConfigsResponse
from strandline.wire.messages.cluster.describe_log_dirs import DescribeLogDirsResponse
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumResponse
from strandline.wire.messages.cluster.incremental_alter_configs import IncrementalAlterConfigsResponse
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerResponse
from strandline.wire.messages.cluster.update_features import UpdateFeaturesResponse
from strandline.wire.messages.groups.delete_groups import DeleteGroupsResponse
from strandline.wire.messages.groups.describe_groups import DescribeGroupsResponse
from strandline.wire.messages.groups.find_coordinator import TRANSACTION, FindCoordinatorResponse
from strandline.wire.messages.groups.heartbeat import HeartbeatResponse
from strandline.wire.messages.groups.join_group import JoinGroupResponse
from strandline.wire.messages.groups.leave_group import LeaveGroupResponse
from strandline.wire.messages.groups.list_groups import ListGroupsResponse
from strandline.wire.messages.groups.offset_commit import OffsetCommitResponse
from strandline.wire.messages.groups.offset_delete import OffsetDeleteResponse
from strandline.wire.messages.groups.offset_fetch import OffsetFetchResponse
from strandline.wire.messages.groups.sync_group import SyncGroupResponse
from strandline.wire.messages.records.delete_records import DeleteRecordsResponse
from strandline.wire.messages.records.fetch import FetchResponse
from strandline.wire.messages.records.init_producer_id import InitProducerIdResponse
from strandline.wire.messages.records.list_offsets import ListOffsetsResponse
from strandline.wire.messages.records.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from strandline.wire.messages.records.produce import ProduceResponse
from strandline.wire.messages.security.alter_client_quotas import AlterClientQuotasResponse
from strandline.wire.messages.security.alter_user_scram_credentials import AlterUserScramCredentialsResponse
from strandline.wire.messages.security.create_acls import CreateAclsResponse
from strandline.wire.messages.security.delete_acls import DeleteAclsResponse
from strandline.wire.messages.security.describe_acls import DescribeAclsResponse
from strandline.wire.messages.topics.alter_partition_reassignments import AlterPartitionReassignmentsResponse
from strandline.wire.messages.topics.create_partitions import CreatePartitionsResponse
from strandline.wire.messages.topics.create_topics import CreateTopicsResponse
from strandline.wire.messages.topics.delete_topics import DeleteTopicsResponse
from strandline.wire.messages.topics.elect_leaders import ElectLeadersResponse
from strandline.wire.messages.topics.metadata import MetadataResponse
from strandline.wire.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnResponse
from strandline.wire.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnResponse
from strandline.wire.messages.transactions.describe_producers import DescribeProducersResponse
from strandline.wire.messages.transactions.end_txn import EndTxnResponse
from strandline.wire.messages.transactions.txn_offset_commit import TxnOffsetCommitResponse
from strandline.wire.messages.transactions.write_txn_markers import WriteTxnMarkersResponse

Claim = tuple[int, tuple[Need, ...]]  # an error code, and what is needed for anything but a refusal
NameOf = Callable[[Any], str]  # of a topic in a message; empty if nobody knows it
Claims = Callable[[Any, Any, NameOf], Iterator[Claim]]


def produced(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
    also = () if request.transactional_id is None else (on_id(Op.WRITE, request.transactional_id),)
    for topic in answer.responses:
        for row in topic.partition_responses:
            yield row.error_code, (on_topic(Op.WRITE, name_of(topic)), *also)


def fetched(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
    for topic in answer.responses:
        for row in topic.partitions:
            yield row.error_code, (on_topic(Op.READ, name_of(topic)),)


def rows_of_topics(operation: Op, topics: str = "topics", rows: str = "partitions") -> Claims:
    def claims(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
        for topic in getattr(answer, topics):
            for row in getattr(topic, rows):
                yield row.error_code, (on_topic(operation, name_of(topic)),)

    return claims


def topics(operation: Op, rows: str, *, unless: Need = ()) -> Claims:
    def claims(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
        for row in getattr(answer, rows):
            yield row.error_code, ((*on_topic(operation, name_of(row)), *unless),)

    return claims


def described(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
    for topic in answer.topics:
        yield topic.error_code, (on_topic(Op.DESCRIBE, name_of(topic)),)


def in_group(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
    yield answer.error_code, (on_group(Op.READ, request.group_id),)


def committed(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
    also = on_id(Op.WRITE, request.transactional_id) if type(answer) is TxnOffsetCommitResponse else ()
    for topic in answer.topics:
        for row in topic.partitions:
            needs = (on_topic(Op.READ, name_of(topic)), on_group(Op.READ, request.group_id))
            yield row.error_code, (*needs, also) if also else needs


def deleted_offsets(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
    need = on_group(Op.DELETE, request.group_id)
    yield answer.error_code, (need,)
    for topic in answer.topics:
        for row in topic.partitions:
            yield row.error_code, (need, on_topic(Op.READ, name_of(topic)))


def positions(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
    for group in answer.groups:
        yield group.error_code, (on_group(Op.DESCRIBE, group.group_id),)
        for topic in group.topics:
            for row in topic.partitions:
                need = on_topic(Op.DESCRIBE, name_of(topic))
                yield row.error_code, (need, on_group(Op.DESCRIBE, group.group_id))


def groups(operation: Op, rows: str) -> Claims:
    def claims(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
        for row in getattr(answer, rows):
            yield getattr(row, "error_code", 0), (on_group(operation, row.group_id),)

    return claims


def coordinators(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
    for row in answer.coordinators:
        is_id = request.key_type == TRANSACTION
        yield row.error_code, ((on_id if is_id else on_group)(Op.DESCRIBE, row.key),)


def identified(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
    """An idempotent producer must be able to write anywhere (KIP-679)."""
    if request.transactional_id is not None:
        yield answer.error_code, (on_id(Op.WRITE, request.transactional_id),)
    else:
        yield answer.error_code, ((*on_cluster(Op.IDEMPOTENT_WRITE), *on_topic(Op.WRITE, ANY)),)


def added(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
    need = on_id(Op.WRITE, request.v3_and_below_transactional_id)
    for topic in answer.results_by_topic_v3_and_below:
        for row in topic.results_by_partition:
            yield row.partition_error_code, (need, on_topic(Op.WRITE, name_of(topic)))


def of_id(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
    needs = (on_id(Op.WRITE, request.transactional_id),)
    if type(answer) is AddOffsetsToTxnResponse:
        yield answer.error_code, (*needs, on_group(Op.READ, request.group_id))
        return
    yield answer.error_code, needs


def configured(operation: Op) -> Claims:
    def claims(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
        for row in getattr(answer, "results", None) or answer.responses:
            if row.resource_type == ResourceType.TOPIC:
                yield row.error_code, (on_topic(operation, row.resource_name),)

    return claims


def cluster(*operations: Op) -> Claims:
    """The whole answer, or each of its rows."""

    def claims(request: Any, answer: Any, name_of: NameOf) -> Iterator[Claim]:
        for code in codes(answer):
            yield code, (on_cluster(*operations),)

    return claims


def codes(part: Any) -> Iterator[int]:
    """The error of the whole, or those of its parts."""
    if isinstance(part, tuple):
        for one in part:
            yield from codes(one)
    elif hasattr(part, "__struct_fields__"):
        own = getattr(part, "error_code", 0)
        inner = [code for name in part.__struct_fields__ for code in codes(getattr(part, name))]
        yield from [own] if own or not inner else inner


CLAIMS: dict[type, Claims] = {
    ProduceResponse: produced,
    FetchResponse: fetched,
    ListOffsetsResponse: rows_of_topics(Op.DESCRIBE),
    OffsetForLeaderEpochResponse: rows_of_topics(Op.DESCRIBE),
    DeleteRecordsResponse: rows_of_topics(Op.DELETE),
    DescribeProducersResponse: rows_of_topics(Op.READ),
    MetadataResponse: described,
    CreateTopicsResponse: topics(Op.CREATE, "topics", unless=on_cluster(Op.CREATE)),
    DeleteTopicsResponse: topics(Op.DELETE, "responses", unless=on_cluster(Op.DELETE)),
    CreatePartitionsResponse: topics(Op.ALTER, "results"),
    JoinGroupResponse: in_group,
    SyncGroupResponse: in_group,
    HeartbeatResponse: in_group,
    LeaveGroupResponse: in_group,
    OffsetCommitResponse: committed,
    TxnOffsetCommitResponse: committed,
    OffsetFetchResponse: positions,
    DescribeGroupsResponse: groups(Op.DESCRIBE, "groups"),
    ListGroupsResponse: groups(Op.DESCRIBE, "groups"),
    DeleteGroupsResponse: groups(Op.DELETE, "results"),
    OffsetDeleteResponse: deleted_offsets,
    FindCoordinatorResponse: coordinators,
    InitProducerIdResponse: identified,
    AddPartitionsToTxnResponse: added,
    AddOffsetsToTxnResponse: of_id,
    EndTxnResponse: of_id,
    DescribeConfigsResponse: configured(Op.DESCRIBE_CONFIGS),
    AlterConfigsResponse: configured(Op.ALTER_CONFIGS),
    IncrementalAlterConfigsResponse: configured(Op.ALTER_CONFIGS),
    CreateAclsResponse: cluster(Op.ALTER),
    DeleteAclsResponse: cluster(Op.ALTER),
    DescribeAclsResponse: cluster(Op.DESCRIBE),
    AlterUserScramCredentialsResponse: cluster(Op.ALTER),
    AlterClientQuotasResponse: cluster(Op.ALTER_CONFIGS),
    AlterPartitionReassignmentsResponse: cluster(Op.ALTER),
    ElectLeadersResponse: cluster(Op.ALTER),
    UpdateFeaturesResponse: cluster(Op.ALTER),
    UnregisterBrokerResponse: cluster(Op.ALTER),
    DescribeQuorumResponse: cluster(Op.DESCRIBE),
    DescribeLogDirsResponse: cluster(Op.DESCRIBE),
    WriteTxnMarkersResponse: cluster(Op.ALTER, Op.CLUSTER_ACTION),
}
