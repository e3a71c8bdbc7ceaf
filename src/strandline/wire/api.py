"""Which APIs there are, where each is served, and in which versions.

A row is a decision: the range that clients are told (None: not offered to them) and whether the controller listener
answers it. Ranges are Kafka 4.3's unless a comment says otherwise; every client of the last eight years finds a common
version in them. A message may know later versions than are told: those are spoken only between our own parties, on
either listener. So are the APIs of our own: brokers' listeners answer them, controllers' those that are decided there,
and nobody is told of them.

Message modules are imported when an API is first used, so that this table costs nothing at start-up.
"""

from functools import cache
from importlib import import_module
from re import sub
from typing import TYPE_CHECKING, Any

from strandline.base.value import Value
from strandline.wire.schema import Message, parse_versions

if TYPE_CHECKING:
    from strandline.wire.messages.api_versions import ApiVersion

API_VERSIONS = 18
OWN_KEYS = 1000  # our own begin here, far above Kafka's


class Api(Value, frozen=True):
    key: int
    name: str
    advertised: range | None  # to clients
    on_controller: bool

    @property
    def is_own(self) -> bool:
        return self.key >= OWN_KEYS

    @property
    def on_broker(self) -> bool:
        return self.advertised is not None or self.is_own

    @property
    def request(self) -> type[Message]:
        return _messages(self.name)[0]

    @property
    def response(self) -> type[Message]:
        return _messages(self.name)[1]


@cache
def _messages(name: str) -> tuple[type[Message], type[Message]]:
    module: Any = import_module(f"strandline.wire.messages.{module_name(name)}")
    return getattr(module, f"{name}Request"), getattr(module, f"{name}Response")


def module_name(name: str) -> str:
    """OffsetForLeaderEpoch → offset_for_leader_epoch."""
    return sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _client(key: int, name: str, versions: str, *, on_controller: bool = False) -> Api:
    return Api(key, name, parse_versions(versions, 0), on_controller)


def _controller(key: int, name: str) -> Api:
    return Api(key, name, None, on_controller=True)


def _own(key: int, name: str, *, on_controller: bool = False) -> Api:
    assert key >= OWN_KEYS
    return Api(key, name, None, on_controller)


APIS = (
    # Minimum 0 although 0-2 are refused: librdkafka needs it (KAFKA-18659). 12 promises transactions v2.
    _client(0, "Produce", "0-11"),
    _client(1, "Fetch", "4-18", on_controller=True),
    _client(2, "ListOffsets", "1-11"),
    _client(3, "Metadata", "0-13"),
    _client(8, "OffsetCommit", "2-9"),
    _client(9, "OffsetFetch", "1-9"),
    _client(10, "FindCoordinator", "0-4"),
    _client(11, "JoinGroup", "0-9"),
    _client(12, "Heartbeat", "0-4"),
    _client(13, "LeaveGroup", "0-5"),
    _client(14, "SyncGroup", "0-5"),
    _client(15, "DescribeGroups", "0-6"),
    _client(16, "ListGroups", "0-5"),
    _client(17, "SaslHandshake", "0-1", on_controller=True),
    _client(API_VERSIONS, "ApiVersions", "0-4", on_controller=True),
    _client(19, "CreateTopics", "2-7", on_controller=True),
    _client(20, "DeleteTopics", "1-6", on_controller=True),
    _client(21, "DeleteRecords", "0-2"),
    _client(22, "InitProducerId", "0-5"),
    _client(23, "OffsetForLeaderEpoch", "2-4"),
    _client(32, "DescribeConfigs", "1-4", on_controller=True),
    _client(33, "AlterConfigs", "0-2", on_controller=True),
    _client(34, "AlterReplicaLogDirs", "1-2"),
    _client(35, "DescribeLogDirs", "1-4"),
    _client(36, "SaslAuthenticate", "0-2", on_controller=True),
    _client(37, "CreatePartitions", "0-3", on_controller=True),
    _client(42, "DeleteGroups", "0-2"),
    _client(43, "ElectLeaders", "0-2", on_controller=True),
    _client(44, "IncrementalAlterConfigs", "0-1", on_controller=True),
    _client(45, "AlterPartitionReassignments", "0-1", on_controller=True),
    _client(46, "ListPartitionReassignments", "0", on_controller=True),
    _controller(52, "Vote"),
    _controller(53, "BeginQuorumEpoch"),
    _controller(54, "EndQuorumEpoch"),
    _client(55, "DescribeQuorum", "0-2", on_controller=True),
    _controller(56, "AlterPartition"),
    _client(57, "UpdateFeatures", "0-2", on_controller=True),
    _controller(59, "FetchSnapshot"),
    _client(60, "DescribeCluster", "0-2", on_controller=True),
    _controller(62, "BrokerRegistration"),
    _controller(63, "BrokerHeartbeat"),
    _client(64, "UnregisterBroker", "0", on_controller=True),
    _controller(67, "AllocateProducerIds"),
    _controller(73, "AssignReplicasToDirs"),
    _client(75, "DescribeTopicPartitions", "0"),
    _own(1000, "GetReplicaLogInfo"),
    _own(1001, "DescribeLosses"),
    _own(1002, "AcknowledgeLosses", on_controller=True),
)

API_BY_KEY = {api.key: api for api in APIS}


def api_of(message: Message | type[Message]) -> Api:
    """The API to which a request or response, or its class, belongs."""
    return API_BY_KEY[message.api_key]


def response_of(key: int) -> type[Message]:
    """The class of the response to a request of this key."""
    return API_BY_KEY[key].response


def is_allowed(key: int, *, is_controller: bool) -> bool:
    """Does this kind of listener answer requests of this key?"""
    api = API_BY_KEY.get(key)
    if api is None:
        return False
    return api.on_controller if is_controller else api.on_broker


@cache
def advertised_versions(*, on_controller: bool) -> tuple["ApiVersion", ...]:
    """What ApiVersions answers on this kind of listener."""
    from strandline.wire.messages.api_versions import ApiVersion  # not before it is needed: see above

    rows = []
    for api in APIS:
        versions = api.advertised
        if on_controller:
            versions = (versions or api.request.versions) if api.on_controller and not api.is_own else None
        if versions is not None:
            rows.append(ApiVersion(api_key=api.key, min_version=versions[0], max_version=versions[-1]))
    return tuple(rows)
