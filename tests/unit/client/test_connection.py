"""A connection to brokers that are old, slow, or out of their mind."""

import pickle
import time
from typing import Any

import pytest
from tests.unit.client.scripted import ScriptedBroker, Session

from strandline.base.errors import ErrorCode
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.connection import Connection
from strandline.client.errors import KafkaError, TimedOut, Unreachable, Unsupported
from strandline.wire.messages.records.fetch import FetchRequest
from strandline.wire.messages.records.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from strandline.wire.messages.topics.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def config_of(broker: ScriptedBroker, **options: str) -> ClientConfig:
    given = {f"kafka.{key.replace('_', '.')}": value for key, value in options.items()}
    return ClientConfig.of({"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}", **given})


def connect(broker: ScriptedBroker, **options: str) -> Connection:
    return Connection("127.0.0.1", broker.port, config_of(broker, **options))


def test_versions_are_the_highest_that_both_know() -> None:
    with ScriptedBroker(versions_max={3: 5}) as broker:
        connection = connect(broker)
        assert connection.version_of(MetadataRequest) == 5
        assert not connection.has_api(1)
        with pytest.raises(Unsupported, match="does not offer the API Fetch"):
            connection.version_of(FetchRequest)
        connection.close()


def test_a_broker_that_knows_only_the_first_version_of_versions() -> None:
    with ScriptedBroker(versions_max={18: 0}) as broker:
        connection = connect(broker)
        assert connection.has_api(3)
        connection.close()


def test_an_answer_that_does_not_come_breaks_the_connection() -> None:
    def sleep(session: Session, request: Any) -> None:
        time.sleep(0.5)

    with ScriptedBroker({3: sleep}) as broker:
        connection = connect(broker)
        with pytest.raises(Unreachable, match="broke: no answer in time"):
            connection.ask(MetadataRequest(), timeout_ms=50)
        assert not connection.is_open
        assert connection.is_stale()


def test_a_broker_that_hangs_up_and_one_that_answers_nonsense() -> None:
    with ScriptedBroker({3: lambda session, request: None}) as broker, pytest.raises(Unreachable, match="it closed"):
        connect(broker).ask(MetadataRequest())

    def nonsense(session: Session, request: Any) -> Any:
        return ListOffsetsResponse()

    with ScriptedBroker({3: nonsense}, versions_max={3: 11}) as broker, pytest.raises(Unreachable, match="broke"):
        connect(broker).ask(MetadataRequest(), version=11)


def test_a_connection_that_was_closed_while_idle_is_opened_anew() -> None:
    with ScriptedBroker() as broker, Cluster(config_of(broker)) as cluster:
        cluster.brokers()
        first = cluster.connection(1)
        first.socket.shutdown(2)
        assert list(cluster.brokers()) == [1]
        assert cluster.connection(1) is not first


# --- refusals that pass by themselves


class LateLeader(ScriptedBroker):
    """A broker with one topic, whose leader is not known for the first few questions, or refuses them."""

    def __init__(self, leaderless: int = 0, refusals: list[ErrorCode] | None = None) -> None:
        super().__init__({3: self.metadata, 2: self.offsets})
        self.leaderless = leaderless
        self.refusals = refusals or []

    def metadata(self, session: Session, request: Any) -> MetadataResponse:
        self.leaderless -= 1
        leader = -1 if self.leaderless >= 0 else 1
        partition = MetadataResponsePartition(leader_id=leader, leader_epoch=4)
        return MetadataResponse(
            brokers=(MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port),),
            topics=(MetadataResponseTopic(name="t", partitions=(partition,)),),
        )

    def offsets(self, session: Session, request: Any) -> ListOffsetsResponse:
        code = self.refusals.pop(0) if self.refusals else ErrorCode.NONE
        row = ListOffsetsPartitionResponse(error_code=code, offset=7)
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="t", partitions=(row,)),))


def test_a_leader_is_waited_for() -> None:
    with LateLeader(leaderless=2) as broker, Cluster(config_of(broker, retry_backoff_ms="10")) as cluster:
        assert cluster.list_offsets({("t", 0): -1})["t", 0].offset == 7


def test_what_passes_by_itself_is_asked_again() -> None:
    codes = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.OFFSET_NOT_AVAILABLE]
    with LateLeader(refusals=codes) as broker, Cluster(config_of(broker, retry_backoff_ms="10")) as cluster:
        assert cluster.list_offsets({("t", 0): -1})["t", 0].offset == 7


def test_what_does_not_pass_is_an_error_with_its_name() -> None:
    with LateLeader(refusals=[ErrorCode.TOPIC_AUTHORIZATION_FAILED]) as broker, Cluster(config_of(broker)) as cluster:
        with pytest.raises(KafkaError, match="offsets of t-0: TOPIC_AUTHORIZATION_FAILED") as caught:
            cluster.list_offsets({("t", 0): -1})
        assert pickle.loads(pickle.dumps(caught.value)).code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_broker_that_leaves_a_partition_out_is_not_asked_for_ever() -> None:
    with LateLeader() as broker, Cluster(config_of(broker)) as cluster:
        broker.answers[2] = lambda session, request: ListOffsetsResponse()
        with pytest.raises(KafkaError, match="no broker answers for t-0"):
            cluster.list_offsets({("t", 0): -1})


def test_a_name_that_no_host_can_have_is_not_reached() -> None:
    config = ClientConfig.of({"kafka.bootstrap.servers": "a..b:9092"})
    with Cluster(config) as cluster, pytest.raises(Unreachable, match=r"cannot connect to a\.\.b:9092"):
        cluster.topics(["t"])


def test_patience_ends_with_the_last_refusal() -> None:
    chosen = {"retry_backoff_ms": "10", "default_api_timeout_ms": "200"}
    with (
        LateLeader(leaderless=10_000) as broker,
        Cluster(config_of(broker, **chosen)) as cluster,
        pytest.raises(TimedOut, match="t-0 has no leader now"),
    ):
        cluster.list_offsets({("t", 0): -1})
