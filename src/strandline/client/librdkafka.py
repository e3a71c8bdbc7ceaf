"""How commands that show a real client configure it, and write with it: confluent-kafka, which is librdkafka."""

import logging
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from strandline.base.value import Value
from strandline.client.ask import Servers, text_of
from strandline.client.config import PLAINTEXT, ClientConfig
from strandline.client.errors import StrandlineError
from strandline.client.security.sasl_options import Sasl
from strandline.client.security.tls import Tls
from strandline.security.pem import certificates_in, keys_in

# librdkafka reports every lost connection on its own; a command says once what went wrong.
quiet = logging.getLogger("strandline.client.librdkafka")
quiet.addHandler(logging.NullHandler())
quiet.propagate = False

ANY_PARTITION = -1  # which the partitioner chooses, by the key if there is one
FLUSH_SLACK_S = 2.0
TOKEN_S = 300.0  # for how long it believes in a token, before it asks for the next


def client_config(cluster: Servers, **options: Any) -> dict[str, Any]:
    """`cluster`: addresses, or how it is reached, with TLS and SASL."""
    secured = security_of(cluster) if isinstance(cluster, ClientConfig) else {}
    base = {"bootstrap.servers": addresses(cluster), "socket.timeout.ms": 10_000, "logger": quiet}
    return {**base, **secured, **options}


def addresses(cluster: Servers) -> str:
    return cluster if isinstance(cluster, str) else ",".join(text_of(*server) for server in cluster.bootstrap)


def security_of(config: ClientConfig) -> dict[str, Any]:
    """librdkafka's names. It chooses the version of TLS by itself."""
    found: dict[str, Any] = {}
    if config.security_protocol != PLAINTEXT:
        found["security.protocol"] = config.security_protocol
    if config.tls is not None:
        found |= tls_options(config.tls)
    if config.sasl is not None:
        found |= sasl_options(config.sasl)
    return found


def tls_options(tls: Tls) -> dict[str, Any]:
    found: dict[str, Any] = {
        "enable.ssl.certificate.verification": tls.verifies,
        "ssl.endpoint.identification.algorithm": "https" if tls.checks_hostname else "none",
    }
    if tls.authorities:
        found["ssl.ca.pem"] = certificates_in(tls.authorities)
    if tls.chain and tls.key is not None:
        found["ssl.certificate.pem"] = certificates_in(tls.chain)
        found["ssl.key.pem"] = keys_in(tls.key.reveal)
        if tls.key_password is not None:
            found["ssl.key.password"] = tls.key_password.reveal
    if tls.ciphers:
        found["ssl.cipher.suites"] = tls.ciphers
    return found


def sasl_options(sasl: Sasl) -> dict[str, Any]:
    if sasl.token_file:
        # It does not look into a token; a while later it asks for another one.
        return {"sasl.mechanism": sasl.mechanism, "oauth_cb": lambda _: (sasl.token(), time.time() + TOKEN_S)}
    return {
        "sasl.mechanism": sasl.mechanism,
        "sasl.username": sasl.username,
        "sasl.password": sasl.password.reveal,
    }


def why(error: KafkaException) -> str:
    return str(error.args[0].str()) if error.args else str(error)


# --- producing


class Written(Value, frozen=True):
    """One record that was acknowledged by all in-sync replicas."""

    topic: str
    partition: int
    offset: int


def write_one(
    cluster: Servers,
    topic: str,
    value: bytes | None,
    key: bytes | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    partition: int = ANY_PARTITION,
    patience_s: float = 10.0,
) -> Written:
    """Write one record, and wait. Raises StrandlineError if it is not acknowledged."""
    answers: list[tuple[KafkaError | None, Message]] = []
    options: dict[str, Any] = {"acks": "all", "enable.idempotence": True, "message.timeout.ms": int(patience_s * 1000)}
    try:
        producer = Producer(client_config(cluster, **options))
        send(producer, topic, key, value, lambda *answer: answers.append(answer), headers=headers, partition=partition)
    except KafkaException as error:
        raise StrandlineError(why(error)) from None
    producer.flush(patience_s + FLUSH_SLACK_S)
    if not answers:
        raise StrandlineError(f"no broker has answered within {patience_s:.0f} s: the record may be written later")
    refusal, message = answers[0]
    if refusal is not None:
        raise StrandlineError(f"the record was not acknowledged: {refusal.str()}")
    at, offset = message.partition(), message.offset()
    assert at is not None and offset is not None, "an acknowledged record has a place"
    return Written(topic, at, offset)


def send(
    producer: Producer,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    delivered: Any,
    *,
    headers: Sequence[tuple[str, bytes | None]] = (),
    partition: int = ANY_PARTITION,
) -> None:
    """Hand over one record, waiting while the client's queue is full."""
    while True:
        try:
            producer.produce(topic, value, key, partition, delivered, headers=list(headers))
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return
