"""What a client must know of a cluster, from the `kafka.*` options of a source or sink.

Java's names come first, since users of Spark know them; librdkafka's are understood where they mean the same. Keys are
matched whatever their case: Spark lower-cases them. What has no effect here is accepted if Kafka's clients accept it
(`INERT`), what the official connector refuses is refused (`REFUSED`), and any other key is an error.

Files of certificates are read when the configuration is made, on the driver: workers need not have them.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from strandline.base.value import Value
from strandline.client.errors import BadOption
from strandline.client.security.sasl_options import Sasl, sasl_of
from strandline.client.security.tls import Tls, tls_of
from strandline.wire.compress import Codec

PREFIX = "kafka."
PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
ACKS_ALL = -1
DEFAULT_PORT = 9092
INT_MAX = 0x7FFF_FFFF
IN_FLIGHT_MAX = 5  # batches of one producer that a broker remembers, and so knows again


class ClientConfig(Value, frozen=True):
    """Times are in milliseconds, sizes in bytes. Defaults are Kafka's, but for fetch and batch sizes, which are made
    for throughput."""

    bootstrap: tuple[tuple[str, int], ...]
    security_protocol: str = PLAINTEXT
    tls: Tls | None = None
    sasl: Sasl | None = None
    client_id: str = "strandline"
    client_rack: str = ""
    group_id: str = ""  # a label: nothing is read by it
    # connections and requests
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    setup_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1000
    retries: int = INT_MAX
    receive_buffer_bytes: int = -1
    send_buffer_bytes: int = -1
    # fetch
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 50 << 20
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 4 << 20
    isolation_level: int = READ_UNCOMMITTED
    # produce
    acks: int = ACKS_ALL
    enable_idempotence: bool = True
    compression: Codec = Codec.NONE
    compression_levels: tuple[tuple[Codec, int], ...] = ()
    delivery_timeout_ms: int = 120_000
    max_in_flight: int = 5
    max_request_size: int = 1 << 20
    batch_size: int = 512 << 10
    ignores_keys: bool = False
    transaction_timeout_ms: int = 3_600_000  # Kafka: a minute; a task's transaction is open until all tasks have ended

    @staticmethod
    def of(options: Mapping[str, str]) -> "ClientConfig":
        """The configuration that the `kafka.*` among `options` describe; others are not looked at.

        Raises `BadOption` for a key or value that makes no sense, or that the connector does not take."""
        given = {key.lower()[len(PREFIX) :]: value for key, value in options.items() if key.lower().startswith(PREFIX)}
        for key in given:
            refuse(key)
        chosen: dict[str, Any] = {}
        for key, value in given.items():
            if key in KEYS:
                field, parse = KEYS[key]
                chosen[field] = parsed(key, parse, value)
        if "bootstrap" not in chosen:
            raise BadOption(
                "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer",
                "give it as host:port[,host:port…] of any nodes of the cluster",
            )
        protocol = chosen.get("security_protocol", PLAINTEXT)
        chosen["compression_levels"] = tuple(
            (codec, parsed(key, whole(low, high), given[key]))
            for key, (codec, low, high) in LEVELS.items()
            if key in given
        )
        chosen["tls"] = tls_of(given) if protocol in (SSL, SASL_SSL) else None
        chosen["sasl"] = sasl_of(given) if protocol in (SASL_PLAINTEXT, SASL_SSL) else None
        if chosen.get("acks", ACKS_ALL) != ACKS_ALL or chosen.get("max_in_flight", 0) > IN_FLIGHT_MAX:
            chosen.setdefault("enable_idempotence", False)  # as in Kafka: only who asks for both contradicts himself
        if "request_timeout_ms" in chosen:
            chosen.setdefault("delivery_timeout_ms", max(120_000, chosen["request_timeout_ms"]))
        config = ClientConfig(**chosen)
        config.check()
        return config

    def check(self) -> None:
        """Raises `BadOption` for options that contradict each other."""
        if self.acks != ACKS_ALL and self.enable_idempotence:
            raise BadOption(
                "Must set acks to all in order to use the idempotent producer",
                "leave kafka.acks out, or set kafka.enable.idempotence=false: retries may then write twice",
            )
        if self.enable_idempotence and self.max_in_flight > IN_FLIGHT_MAX:
            raise BadOption(
                f"Must set max.in.flight.requests.per.connection to at most {IN_FLIGHT_MAX} to use the idempotent"
                " producer"
            )
        if self.delivery_timeout_ms < self.request_timeout_ms:
            raise BadOption("kafka.delivery.timeout.ms should be equal to or larger than kafka.request.timeout.ms")

    def level_of(self, codec: Codec) -> int | None:
        """The level that the user chose for this codec, if any."""
        return dict(self.compression_levels).get(codec)


def refuse(key: str) -> None:
    """Raises `BadOption` if this key (without its prefix) may not be given."""
    if key in REFUSED:
        raise BadOption(f"Kafka option '{key}' is not supported: {REFUSED[key]}")
    known = (*KEYS, *LEVELS, *INERT, *SECURITY_KEYS, *REFUSED)
    if key not in known:
        near = get_close_matches(key, known, 3, 0.6)
        hint = f"did you mean {' or '.join(PREFIX + name for name in near)}?" if near else ""
        raise BadOption(f"there is no option {PREFIX}{key}", hint)


# --- values


def parsed(key: str, parse: Callable[[str], Any], value: str) -> Any:
    try:
        return parse(value.strip())
    except ValueError as error:
        raise BadOption(f"option {PREFIX}{key}: {error}") from None


def servers(text: str) -> tuple[tuple[str, int], ...]:
    """host:port, …; an IPv6 address stands in brackets."""
    found = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        part = part.rpartition("://")[2]
        host, colon, port = part.rpartition(":")
        if not colon or part.endswith("]"):
            host, port = part, str(DEFAULT_PORT)
        if not port.isdecimal() or not 0 < int(port) < 65536 or not host.strip("[]"):
            raise ValueError(f"'{part}' is not host:port")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise ValueError("no host:port is named")
    return tuple(found)


def whole(low: int, high: int = INT_MAX) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError(f"'{text}' is not a whole number") from None
        if not low <= number <= high:
            raise ValueError(f"{number} lies outside of {low} to {high}")
        return number

    return parse


def one_of(**values: Any) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        chosen = text.lower()
        if chosen not in values:
            raise ValueError(f"'{text}' is none of {', '.join(values)}")
        return values[chosen]

    return parse


def text_of(text: str) -> str:
    return text


def protocol_of(text: str) -> str:
    if text.upper() not in (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL):
        raise ValueError(f"'{text}' is none of {PLAINTEXT}, {SSL}, {SASL_PLAINTEXT}, {SASL_SSL}")
    return text.upper()


def acks_of(text: str) -> int:
    if text.lower() not in ("all", "-1", "0", "1"):
        raise ValueError(f"'{text}' is not all, -1, 0 or 1")
    return ACKS_ALL if text.lower() == "all" else int(text)


CODECS = {codec.name.lower(): codec for codec in Codec}
TRUE_FALSE = one_of(true=True, false=False)
MS = whole(0)
BYTES = whole(1)

# key: (field of ClientConfig, what makes its value)
KEYS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "bootstrap.servers": ("bootstrap", servers),
    "metadata.broker.list": ("bootstrap", servers),
    "security.protocol": ("security_protocol", protocol_of),
    "client.id": ("client_id", text_of),
    "client.rack": ("client_rack", text_of),
    "group.id": ("group_id", text_of),
    "request.timeout.ms": ("request_timeout_ms", whole(1)),
    "default.api.timeout.ms": ("default_api_timeout_ms", whole(1)),
    "socket.connection.setup.timeout.ms": ("setup_timeout_ms", whole(1)),
    "retry.backoff.ms": ("retry_backoff_ms", MS),
    "retry.backoff.max.ms": ("retry_backoff_max_ms", MS),
    "retries": ("retries", whole(0)),
    "receive.buffer.bytes": ("receive_buffer_bytes", whole(-1)),
    "send.buffer.bytes": ("send_buffer_bytes", whole(-1)),
    "fetch.min.bytes": ("fetch_min_bytes", whole(0)),
    "fetch.max.bytes": ("fetch_max_bytes", BYTES),
    "fetch.max.wait.ms": ("fetch_max_wait_ms", MS),
    "fetch.wait.max.ms": ("fetch_max_wait_ms", MS),
    "max.partition.fetch.bytes": ("max_partition_fetch_bytes", BYTES),
    "fetch.message.max.bytes": ("max_partition_fetch_bytes", BYTES),
    "isolation.level": (
        "isolation_level",
        one_of(read_uncommitted=READ_UNCOMMITTED, read_committed=READ_COMMITTED),
    ),
    "acks": ("acks", acks_of),
    "request.required.acks": ("acks", acks_of),
    "enable.idempotence": ("enable_idempotence", TRUE_FALSE),
    "compression.type": ("compression", one_of(**CODECS)),
    "compression.codec": ("compression", one_of(**CODECS)),
    "delivery.timeout.ms": ("delivery_timeout_ms", whole(1)),
    "max.in.flight.requests.per.connection": ("max_in_flight", whole(1)),
    "max.request.size": ("max_request_size", whole(1)),
    "message.max.bytes": ("max_request_size", whole(1)),
    "batch.size": ("batch_size", whole(1)),
    "partitioner.ignore.keys": ("ignores_keys", TRUE_FALSE),
    "transaction.timeout.ms": ("transaction_timeout_ms", whole(1)),
}

LEVELS = {
    "compression.gzip.level": (Codec.GZIP, 1, 9),
    "compression.lz4.level": (Codec.LZ4, 1, 17),
    "compression.zstd.level": (Codec.ZSTD, -131072, 22),
}

SECURITY_KEYS = (
    "ssl.truststore.location",
    "ssl.truststore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.password",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.key.location",
    "ssl.key.pem",
    "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification",
    "ssl.enabled.protocols",
    "ssl.cipher.suites",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.jaas.config",
    "sasl.username",
    "sasl.password",
    "sasl.oauthbearer.token.endpoint.url",
)

# Kafka's clients know these; here they change nothing.
INERT = (
    "allow.auto.create.topics",
    "buffer.memory",
    "check.crcs",
    "client.dns.lookup",
    "connections.max.idle.ms",
    "enable.metrics.push",
    "exclude.internal.topics",
    "heartbeat.interval.ms",
    "linger.ms",
    "max.block.ms",
    "max.poll.interval.ms",
    "max.poll.records",
    "metadata.max.age.ms",
    "metadata.max.idle.ms",
    "metadata.recovery.strategy",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "session.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
    "socket.keepalive.enable",
    "ssl.secure.random.implementation",
    "ssl.protocol",
    "ssl.provider",
)

REFUSED = {
    "auto.offset.reset": "set the source option 'startingOffsets' to 'earliest' or 'latest' instead; offsets are kept"
    " by the source, and never by a consumer",
    "key.deserializer": "keys are always binary; use DataFrame operations to deserialize them",
    "value.deserializer": "values are always binary; use DataFrame operations to deserialize them",
    "key.serializer": "keys are string or binary; use DataFrame operations to serialize them",
    "value.serializer": "values are string or binary; use DataFrame operations to serialize them",
    "enable.auto.commit": "no offsets are committed to consumer groups",
    "auto.commit.interval.ms": "no offsets are committed to consumer groups",
    "interceptor.classes": "there are no Java classes here",
    "metric.reporters": "there are no Java classes here",
    "partitioner.class": "give the column 'partition' to choose partitions yourself",
    "partition.assignment.strategy": "partitions are assigned by Spark",
    "transactional.id": "exactly once is chosen with the sink option 'deliveryGuarantee'",
    "sasl.client.callback.handler.class": "there are no Java classes here",
    "sasl.login.callback.handler.class": "there are no Java classes here",
    "sasl.login.class": "there are no Java classes here",
    "sasl.kerberos.service.name": "SASL mechanisms are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER",
    "ssl.engine.factory.class": "there are no Java classes here",
    "ssl.trustmanager.algorithm": "there are no Java classes here",
    "ssl.keymanager.algorithm": "there are no Java classes here",
    "security.providers": "there are no Java classes here",
}
