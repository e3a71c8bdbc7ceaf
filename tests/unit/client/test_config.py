"""Options as Spark hands them over become a configuration, or an error that says what to do."""

import pickle

import pytest
from tests.rows import each

from strandline.base.secret import Secret
from strandline.client.config import INERT, KEYS, LEVELS, READ_COMMITTED, REFUSED, SECURITY_KEYS, ClientConfig
from strandline.client.errors import BadOption, KafkaError, OffsetOutOfRange, TopicIdChanged
from strandline.wire.compress import Codec

SERVERS = {"kafka.bootstrap.servers": "h:1"}


def test_keys_are_known_whatever_their_case_and_others_are_not_looked_at() -> None:
    config = ClientConfig.of(
        {
            "KAFKA.Bootstrap.Servers": "a:1, b ,[::1]:9, PLAINTEXT://c:3",
            "subscribe": "t",
            "kafka.Isolation.Level": "READ_COMMITTED",
            "kafka.compression.type": "ZSTD",
            "kafka.compression.zstd.level": "7",
            "kafka.max.partition.fetch.bytes": " 1000 ",
            "kafka.group.id": "label",
        }
    )
    assert config.bootstrap == (("a", 1), ("b", 9092), ("::1", 9), ("c", 3))
    assert config.isolation_level == READ_COMMITTED
    assert config.compression is Codec.ZSTD
    assert (config.level_of(Codec.ZSTD), config.level_of(Codec.GZIP)) == (7, None)
    assert config.max_partition_fetch_bytes == 1000
    assert config.group_id == "label"


@each(
    ("options", "message"),
    [
        ({}, r"Option 'kafka\.bootstrap\.servers' must be specified"),
        ({"kafka.bootstrap.servers": "h:port"}, "'h:port' is not host:port"),
        ({"kafka.bootstrap.servers": "h:70000"}, "is not host:port"),
        ({"kafka.bootstrap.servers": ","}, "no host:port is named"),
        ({**SERVERS, "kafka.acks": "2"}, "'2' is not all, -1, 0 or 1"),
        ({**SERVERS, "kafka.request.timeout.ms": "soon"}, r"kafka\.request\.timeout\.ms: 'soon' is not a whole number"),
        ({**SERVERS, "kafka.fetch.max.bytes": "0"}, "0 lies outside of 1 to"),
        ({**SERVERS, "kafka.compression.type": "brotli"}, "'brotli' is none of none, gzip, snappy, lz4, zstd"),
        ({**SERVERS, "kafka.security.protocol": "TLS"}, "'TLS' is none of PLAINTEXT, SSL"),
        ({**SERVERS, "kafka.isolation.level": "serializable"}, "is none of read_uncommitted, read_committed"),
        ({**SERVERS, "kafka.acks": "1", "kafka.enable.idempotence": "true"}, "Must set acks to all"),
        (
            {**SERVERS, "kafka.enable.idempotence": "true", "kafka.max.in.flight.requests.per.connection": "6"},
            "to at most 5",
        ),
        (
            {**SERVERS, "kafka.delivery.timeout.ms": "5", "kafka.request.timeout.ms": "6"},
            r"should be equal to or larger than kafka\.request\.timeout\.ms",
        ),
    ],
)
def test_values_that_are_invalid(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        ClientConfig.of(options)


def test_the_error_for_a_misspelt_key_names_similar_keys() -> None:
    with pytest.raises(BadOption, match=r"there is no option kafka\.max\.partition\.fetch\.byte") as caught:
        ClientConfig.of({**SERVERS, "kafka.max.partition.fetch.byte": "1"})
    assert "kafka.max.partition.fetch.bytes" in caught.value.advice


@each("key", sorted(REFUSED))
def test_what_the_official_connector_refuses_is_refused(key: str) -> None:
    with pytest.raises(BadOption, match=f"Kafka option '{key}' is not supported: "):
        ClientConfig.of({**SERVERS, f"kafka.{key}": "x"})


def test_a_key_means_one_thing() -> None:
    groups = [set(KEYS), set(LEVELS), set(INERT), set(SECURITY_KEYS), set(REFUSED)]
    assert sum(map(len, groups)) == len(set().union(*groups))
    fields = set(ClientConfig.__struct_fields__)
    assert {field for field, _ in KEYS.values()} <= fields


@each("key", INERT)
def test_what_has_no_effect_is_accepted(key: str) -> None:
    assert ClientConfig.of({**SERVERS, f"kafka.{key}": "1"}) == ClientConfig.of(SERVERS)


def test_a_producer_with_fewer_acknowledgements_is_not_idempotent() -> None:
    assert ClientConfig.of(SERVERS).enable_idempotence
    assert not ClientConfig.of({**SERVERS, "kafka.acks": "1"}).enable_idempotence
    many = {**SERVERS, "kafka.max.in.flight.requests.per.connection": "6"}
    assert not ClientConfig.of(many).enable_idempotence
    assert ClientConfig.of({**SERVERS, "kafka.request.timeout.ms": "200000"}).delivery_timeout_ms == 200_000


def test_secrets_travel_and_are_not_shown() -> None:
    config = ClientConfig.of(
        {
            **SERVERS,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": "alice",
            "kafka.sasl.password": "s3cret",
            "kafka.ssl.keystore.certificate.chain": "c",
            "kafka.ssl.keystore.key": "k3y",
            "kafka.ssl.key.password": "pa55",
        }
    )
    assert pickle.loads(pickle.dumps(config)) == config
    assert config.sasl is not None
    assert config.sasl.password == Secret("s3cret")
    for text in (repr(config), str(config), f"{config!r}"):
        assert not any(secret in text for secret in ("s3cret", "k3y", "pa55"))


def test_errors_travel_between_processes() -> None:
    for error in (
        OffsetOutOfRange("t", 0, 5, 1, 3),
        TopicIdChanged("t", "a", "b"),
        KafkaError(3, "nothing", "do something"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), copy.__dict__) == (type(error), str(error), error.__dict__)
