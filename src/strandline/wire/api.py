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
    from strandline.wire.messages.cluster.api_versions import ApiVersion

API_VERSIONS = 18
TELEMETRY = "telemetry"  # the folder of APIs that a broker without a receiver does not offer
OWN_KEYS = 1000  # our own begin here, far above Kafka's


class Api(Value, frozen=True):
    key: int
    name: str
    folder: str  # below wire/messages
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
        return _messages(self.folder, self.name)[0]

    @property
    def response(self) -> type[Message]:
        return _messages(self.folder, self.name)[1]


@cache
def _messages(folder: str, name: str) -> tuple[type[Message], type[Message]]:
    module: Any = import_module(f"strandline.wire.messages.{folder}.{module_name(name)}")
    request, response = getattr(module, f"{name}Request"), getattr(module, f"{name}Response")
    assert (request.kind, response.kind) == ("request", "response")
    assert (request.api_key, request.versions) == (response.api_key, response.versions)
    return request, response


def module_name(name: str) -> str:
    """OffsetForLeaderEpoch → offset_for_leader_epoch."""
    return sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _client(key: int, place: str, versions: str, *, on_controller: bool = False) -> Api:
    assert 0 <= key < OWN_KEYS
    folder, name = place.split(".")
    return Api(key, name, folder, parse_versions(versions, 0), on_controller)


def _controller(key: int, place: str) -> Api:
    assert 0 <= key < OWN_KEYS
    folder, name = place.split(".")
    return Api(key, name, folder, None, on_controller=True)


def _own(key: int, place: str, *, on_controller: bool = False) -> Api:
    assert key >= OWN_KEYS
    folder, name = place.split(".")
    return Api(key, name, folder, None, on_controller)


APIS = (
    # Minimum 0 although 0-2 are refused: librdkafka needs it (KAFKA-18659).
    _client(0, "records.Produce", "0-13"),
    _client(1, "records.Fetch", "4-18", on_controller=True),
    _client(2, "records.ListOffsets", "1-11"),
    _client(3, "topics.Metadata", "0-13"),
    _client(8, "groups.OffsetCommit", "2-10"),
    _client(9, "groups.OffsetFetch", "1-10"),
    _client(10, "groups.FindCoordinator", "0-5"),
    _client(11, "groups.JoinGroup", "0-9"),
    _client(12, "groups.Heartbeat", "0-4"),
    _client(13, "groups.LeaveGroup", "0-5"),
    _client(14, "groups.SyncGroup", "0-5"),
    _client(15, "groups.DescribeGroups", "0-6"),
    _client(16, "groups.ListGroups", "0-5"),
    _client(17, "cluster.SaslHandshake", "0-1", on_controller=True),
    _client(API_VERSIONS, "cluster.ApiVersions", "0-4", on_controller=True),
    _client(19, "topics.CreateTopics", "2-7", on_controller=True),
    _client(20, "topics.DeleteTopics", "1-6", on_controller=True),
    _client(21, "records.DeleteRecords", "0-2"),
    _client(22, "records.InitProducerId", "0-6"),  # 6: two-phase commits (KIP-939), which Kafka does not offer yet
    _client(23, "records.OffsetForLeaderEpoch", "2-4"),
    _client(24, "transactions.AddPartitionsToTxn", "0-5"),
    _client(25, "transactions.AddOffsetsToTxn", "0-4"),
    _client(26, "transactions.EndTxn", "0-5"),
    _client(27, "transactions.WriteTxnMarkers", "1-2"),
    _client(28, "transactions.TxnOffsetCommit", "0-5"),
    _client(29, "security.DescribeAcls", "1-3", on_controller=True),
    _client(30, "security.CreateAcls", "1-3", on_controller=True),
    _client(31, "security.DeleteAcls", "1-3", on_controller=True),
    _client(32, "cluster.DescribeConfigs", "1-4", on_controller=True),
    _client(33, "cluster.AlterConfigs", "0-2", on_controller=True),
    _client(34, "cluster.AlterReplicaLogDirs", "1-2"),
    _client(35, "cluster.DescribeLogDirs", "1-4"),
    _client(36, "cluster.SaslAuthenticate", "0-2", on_controller=True),
    _client(37, "topics.CreatePartitions", "0-3", on_controller=True),
    _client(42, "groups.DeleteGroups", "0-2"),
    _client(43, "topics.ElectLeaders", "0-2", on_controller=True),
    _client(44, "cluster.IncrementalAlterConfigs", "0-1", on_controller=True),
    _client(45, "topics.AlterPartitionReassignments", "0-1", on_controller=True),
    _client(46, "topics.ListPartitionReassignments", "0", on_controller=True),
    _client(47, "groups.OffsetDelete", "0"),
    _client(48, "security.DescribeClientQuotas", "0-1"),
    _client(49, "security.AlterClientQuotas", "0-1", on_controller=True),
    _client(50, "security.DescribeUserScramCredentials", "0"),
    _client(51, "security.AlterUserScramCredentials", "0", on_controller=True),
    _controller(52, "quorum.Vote"),
    _controller(53, "quorum.BeginQuorumEpoch"),
    _controller(54, "quorum.EndQuorumEpoch"),
    _client(55, "cluster.DescribeQuorum", "0-2", on_controller=True),
    _controller(56, "brokers.AlterPartition"),
    _client(57, "cluster.UpdateFeatures", "0-2", on_controller=True),
    _controller(59, "quorum.FetchSnapshot"),
    _client(60, "cluster.DescribeCluster", "0-2", on_controller=True),
    _client(61, "transactions.DescribeProducers", "0"),
    _controller(62, "brokers.BrokerRegistration"),
    _controller(63, "brokers.BrokerHeartbeat"),
    _client(64, "cluster.UnregisterBroker", "0", on_controller=True),
    _client(65, "transactions.DescribeTransactions", "0"),
    _client(66, "transactions.ListTransactions", "0-2"),
    _controller(67, "brokers.AllocateProducerIds"),
    _client(68, "consumer_groups.ConsumerGroupHeartbeat", "0-1"),
    _client(69, "consumer_groups.ConsumerGroupDescribe", "0-1"),
    _client(71, "telemetry.GetTelemetrySubscriptions", "0"),
    _client(72, "telemetry.PushTelemetry", "0"),
    _controller(73, "brokers.AssignReplicasToDirs"),
    _client(74, "cluster.ListConfigResources", "0-1"),
    _client(75, "topics.DescribeTopicPartitions", "0"),
    _own(1000, "own.GetReplicaLogInfo"),
    _own(1001, "own.DescribeLosses"),
    _own(1002, "own.AcknowledgeLosses", on_controller=True),
    _own(1003, "own.Quarantine", on_controller=True),
)

API_BY_KEY = {api.key: api for api in APIS}
assert list(API_BY_KEY) == sorted(API_BY_KEY), "by key"
assert len(API_BY_KEY) == len(APIS), "a key names one API"


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
def advertised_versions(*, on_controller: bool, has_telemetry: bool = False) -> tuple["ApiVersion", ...]:
    """What ApiVersions answers on this kind of listener. `has_telemetry`: the broker takes what clients push."""
    from strandline.wire.messages.cluster.api_versions import ApiVersion  # not before it is needed: see above

    rows = []
    for api in APIS:
        versions = api.advertised
        if on_controller:
            versions = (versions or api.request.versions) if api.on_controller and not api.is_own else None
        if api.folder == TELEMETRY and not has_telemetry:
            versions = None
        if versions is not None:
            rows.append(ApiVersion(api_key=api.key, min_version=versions[0], max_version=versions[-1]))
    assert any(row.api_key == API_VERSIONS for row in rows), "a client begins with ApiVersions"
    return tuple(rows)
