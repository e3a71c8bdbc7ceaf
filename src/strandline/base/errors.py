"""Kafka's error codes: what goes over the wire when something is refused.

An error code is an expected answer, so it is a value and never an exception. Names and numbers are Kafka's, but for
those of our own at the end; the messages are in words of our own, for the APIs whose answers carry a message.
"""

from enum import IntEnum


class ErrorCode(IntEnum):
    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133
    GROUP_DELETION_FAILED = 134
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135
    CONTROLLER_ID_NOT_REGISTERED = 136

    # Our own: numbers that Kafka does not have, used only in APIs that clients do not see.
    REQUEST_LIMIT_REACHED = 1000


OWN_CODES = 1000  # our own begin here

E = ErrorCode

# Only where the name alone says too little.
MESSAGES: dict[int, str] = {
    E.UNKNOWN_SERVER_ERROR: "The server failed unexpectedly while serving the request.",
    E.OFFSET_OUT_OF_RANGE: "The log does not have the requested offset.",
    E.CORRUPT_MESSAGE: "The record batch fails its checksum or is malformed.",
    E.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic or partition.",
    E.LEADER_NOT_AVAILABLE: "The partition has no leader now.",
    E.NOT_LEADER_OR_FOLLOWER: "This broker is not the leader, or not a replica, of the partition.",
    E.REQUEST_TIMED_OUT: "The request was not completed in time.",
    E.MESSAGE_TOO_LARGE: "The record batch is larger than the broker accepts.",
    E.STALE_CONTROLLER_EPOCH: "Another controller is active.",
    E.OFFSET_METADATA_TOO_LARGE: "The metadata of the committed offset is too large.",
    E.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is still loading its state.",
    E.NOT_COORDINATOR: "This broker is not the coordinator of the group or transaction.",
    E.INVALID_TOPIC_EXCEPTION: "The topic's name is not valid.",
    E.RECORD_LIST_TOO_LARGE: "The record batch is larger than a log segment may be.",
    E.NOT_ENOUGH_REPLICAS: "Nothing was written: fewer replicas are in sync than min.insync.replicas asks for.",
    E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "The records were written, but to fewer in-sync replicas than required.",
    E.INVALID_REQUIRED_ACKS: "acks must be -1, 0 or 1.",
    E.ILLEGAL_GENERATION: "The generation is not the group's current one.",
    E.INCONSISTENT_GROUP_PROTOCOL: "The member supports no protocol that all members of the group support.",
    E.INVALID_GROUP_ID: "The group id is not valid.",
    E.UNKNOWN_MEMBER_ID: "The group has no such member.",
    E.INVALID_SESSION_TIMEOUT: "The session timeout lies outside of the range that the broker allows.",
    E.REBALANCE_IN_PROGRESS: "The group is rebalancing; join again.",
    E.INVALID_TIMESTAMP: "The record's timestamp lies outside of the accepted range.",
    E.UNSUPPORTED_VERSION: "The server does not support this version of the API or feature.",
    E.TOPIC_ALREADY_EXISTS: "A topic of this name exists already.",
    E.INVALID_PARTITIONS: "The number of partitions is not valid.",
    E.INVALID_REPLICATION_FACTOR: "The replication factor is below 1 or above the number of brokers.",
    E.INVALID_REPLICA_ASSIGNMENT: "The replica assignment is not valid.",
    E.INVALID_CONFIG: "The configuration is not valid.",
    E.NOT_CONTROLLER: "This node is not the active controller.",
    E.INVALID_REQUEST: "The request is malformed, or makes no sense to this broker.",
    E.POLICY_VIOLATION: "The broker's policy forbids the request.",
    E.OUT_OF_ORDER_SEQUENCE_NUMBER: "The producer's sequence number does not follow its last one.",
    E.DUPLICATE_SEQUENCE_NUMBER: "The producer's sequence number was written before.",
    E.INVALID_PRODUCER_EPOCH: "The producer's epoch is old.",
    E.INVALID_TXN_STATE: "The transaction's state does not allow the operation.",
    E.INVALID_PRODUCER_ID_MAPPING: "The producer id does not belong to the transactional id.",
    E.OPERATION_NOT_ATTEMPTED: "The operation was not attempted, because another one of the request failed.",
    E.KAFKA_STORAGE_ERROR: "The disk failed while the log was accessed.",
    E.LOG_DIR_NOT_FOUND: "The broker has no such log directory.",
    E.UNKNOWN_PRODUCER_ID: "The broker has no state of this producer; its records may have been deleted.",
    E.NON_EMPTY_GROUP: "The group still has members.",
    E.GROUP_ID_NOT_FOUND: "There is no such group.",
    E.FETCH_SESSION_ID_NOT_FOUND: "The broker does not know the fetch session.",
    E.INVALID_FETCH_SESSION_EPOCH: "The fetch session's epoch is not the expected one.",
    E.LISTENER_NOT_FOUND: "The leader has no listener of the name that the request came in by.",
    E.FENCED_LEADER_EPOCH: "The leader epoch of the request is older than the broker's.",
    E.UNKNOWN_LEADER_EPOCH: "The leader epoch of the request is newer than the broker's.",
    E.UNSUPPORTED_COMPRESSION_TYPE: "The compression type is not supported here.",
    E.STALE_BROKER_EPOCH: "The broker epoch is not the current one.",
    E.OFFSET_NOT_AVAILABLE: "The new leader's high watermark has not yet reached its old value.",
    E.MEMBER_ID_REQUIRED: "Join again with the member id of this answer.",
    E.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader cannot lead now.",
    E.FENCED_INSTANCE_ID: "Another member with the same group.instance.id has taken over.",
    E.ELIGIBLE_LEADERS_NOT_AVAILABLE: "No replica may lead the partition now.",
    E.ELECTION_NOT_NEEDED: "The partition needs no election.",
    E.NO_REASSIGNMENT_IN_PROGRESS: "No partition reassignment is in progress.",
    E.GROUP_SUBSCRIBED_TO_TOPIC: "The group is subscribed to the topic, so its offsets cannot be deleted.",
    E.INVALID_RECORD: "The record failed the broker's validation.",
    E.THROTTLING_QUOTA_EXCEEDED: "The quota is used up.",
    E.PRODUCER_FENCED: "A newer producer has the same transactional id.",
    E.RESOURCE_NOT_FOUND: "The request names a resource that does not exist.",
    E.DUPLICATE_RESOURCE: "The request names a resource twice.",
    E.INCONSISTENT_VOTER_SET: "Sender or receiver is not one of the voters.",
    E.INVALID_UPDATE_VERSION: "The version to change to is not valid.",
    E.FEATURE_UPDATE_FAILED: "The feature could not be changed.",
    E.SNAPSHOT_NOT_FOUND: "There is no such snapshot.",
    E.POSITION_OUT_OF_RANGE: "The position lies outside of the snapshot.",
    E.UNKNOWN_TOPIC_ID: "This server does not host this topic id.",
    E.DUPLICATE_BROKER_REGISTRATION: "Another live broker uses this broker id.",
    E.BROKER_ID_NOT_REGISTERED: "No broker is registered by this id.",
    E.INCONSISTENT_TOPIC_ID: "The log belongs to another topic id than the request names.",
    E.INCONSISTENT_CLUSTER_ID: "The request is meant for another cluster.",
    E.FETCH_SESSION_TOPIC_ID_ERROR: "The fetch session mixes topic ids and names.",
    E.INELIGIBLE_REPLICA: "The new ISR has a replica that may not be in it.",
    E.NEW_LEADER_ELECTED: "The change was made, and it made another replica the leader.",
    E.FENCED_MEMBER_EPOCH: "The member epoch is fenced: give up all partitions and join again.",
    E.UNRELEASED_INSTANCE_ID: "Another member still uses this instance id.",
    E.UNSUPPORTED_ASSIGNOR: "The group does not support this assignor.",
    E.STALE_MEMBER_EPOCH: "The member epoch is old.",
    E.MISMATCHED_ENDPOINT_TYPE: "The request came to an endpoint of another type.",
    E.INVALID_REGISTRATION: "The controller finds the registration invalid.",
    E.TRANSACTION_ABORTABLE: "The transaction failed; abort it to go on.",
    E.INVALID_VOTER_KEY: "The voter key is not the receiver's.",
    E.DUPLICATE_VOTER: "The node is a voter already.",
    E.VOTER_NOT_FOUND: "The node is not a voter.",
    E.REBOOTSTRAP_REQUIRED: "The client's metadata is stale: it must bootstrap again.",
    E.CONTROLLER_ID_NOT_REGISTERED: "No controller is registered by this id.",
    E.REQUEST_LIMIT_REACHED: "The request asks for more than is served at once; ask again for the rest.",
}

# A client may send the same request again without asking its user.
RETRIABLE: frozenset[ErrorCode] = frozenset(
    {
        E.CORRUPT_MESSAGE,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.LEADER_NOT_AVAILABLE,
        E.NOT_LEADER_OR_FOLLOWER,
        E.REQUEST_TIMED_OUT,
        E.REPLICA_NOT_AVAILABLE,
        E.NETWORK_EXCEPTION,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.NOT_CONTROLLER,
        E.CONCURRENT_TRANSACTIONS,
        E.KAFKA_STORAGE_ERROR,
        E.FETCH_SESSION_ID_NOT_FOUND,
        E.INVALID_FETCH_SESSION_EPOCH,
        E.LISTENER_NOT_FOUND,
        E.FENCED_LEADER_EPOCH,
        E.UNKNOWN_LEADER_EPOCH,
        E.OFFSET_NOT_AVAILABLE,
        E.PREFERRED_LEADER_NOT_AVAILABLE,
        E.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        E.ELECTION_NOT_NEEDED,
        E.UNSTABLE_OFFSET_COMMIT,
        E.THROTTLING_QUOTA_EXCEEDED,
        E.UNKNOWN_TOPIC_ID,
        E.INCONSISTENT_TOPIC_ID,
        E.FETCH_SESSION_TOPIC_ID_ERROR,
        E.SHARE_SESSION_NOT_FOUND,
        E.INVALID_SHARE_SESSION_EPOCH,
        E.SHARE_SESSION_LIMIT_REACHED,
        E.REQUEST_LIMIT_REACHED,
    }
)

KNOWN: dict[int, ErrorCode] = {int(code): code for code in ErrorCode}

assert len(ErrorCode.__members__) == len(KNOWN), "a number has one name"
assert sorted(code for code in KNOWN if code < OWN_CODES) == list(range(-1, E.CONTROLLER_ID_NOT_REGISTERED + 1))
assert E.NONE not in MESSAGES
assert RETRIABLE.isdisjoint((E.NONE, E.UNKNOWN_SERVER_ERROR)), "a number that nobody knows is not tried again"


def error_of(code: int) -> ErrorCode:
    """The code of a peer's answer. A number that we do not know means UNKNOWN_SERVER_ERROR, as in Kafka's clients."""
    return KNOWN.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)


def message_of(code: int) -> str:
    """One sentence for people; empty for NONE."""
    known = error_of(code)
    if known is ErrorCode.NONE:
        return ""
    return MESSAGES.get(known) or known.name.replace("_", " ").capitalize() + "."


def is_retriable(code: int) -> bool:
    """May a client send the same request again?"""
    return error_of(code) in RETRIABLE
