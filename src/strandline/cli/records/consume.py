"""`strandline consume`: records in, lines out."""

import json
import sys
import time
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from strandline.cli.connect import HERE, Json, OfCluster, fail, hide_broken_pipe
from strandline.client.admin.topics import partitions_of
from strandline.client.ask import Servers
from strandline.client.librdkafka import client_config, why

POLL_S = 0.2


def consume(
    topic: str,
    *,
    from_beginning: bool = False,
    max_messages: int | None = None,
    timeout_ms: int | None = None,
    group: str | None = None,
    format_: str = "%v",
    json_output: Json = False,
    cluster: OfCluster = HERE,
) -> None:
    """Print records, one a line, until Ctrl-C.

    Parameters
    ----------
    from_beginning
        start at the oldest record, unless the group has committed offsets
    max_messages
        stop after this many records
    timeout_ms
        stop when no record has arrived for this long
    group
        the consumer group, for which offsets are committed
    format_
        format of a line: %t topic, %p partition, %o offset, %k key, %v value, %T timestamp
    """
    partitions = partitions_of(cluster.config, topic)
    if not partitions:
        fail(f"topic '{topic}' does not exist", f"create it with `strandline topics create {topic}`")
    consumer = consumer_of(cluster.config, topic, partitions, group, from_beginning)
    try:
        read(consumer, max_messages, timeout_ms, format_, json_output, has_group=group is not None)
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        hide_broken_pipe()
    except KafkaException as error:
        fail(why(error), f"`strandline explain {topic}` says what is wrong with the topic")
    finally:
        consumer.close()


def consumer_of(
    cluster: Servers, topic: str, partitions: list[int], group: str | None, from_beginning: bool
) -> Consumer:
    options = {
        "group.id": group or "strandline-consume",
        "auto.offset.reset": "earliest" if from_beginning else "latest",
        "enable.auto.commit": group is not None,
        "fetch.wait.max.ms": 100,
    }
    consumer = Consumer(client_config(cluster, **options))
    if group is not None:
        consumer.subscribe([topic])
    else:
        # Alone there is nobody to share partitions with: no group, no wait for it.
        start = OFFSET_BEGINNING if from_beginning else OFFSET_END
        consumer.assign([TopicPartition(topic, p, start) for p in partitions])
    return consumer


def read(
    consumer: Consumer,
    max_messages: int | None,
    timeout_ms: int | None,
    form: str,
    json_output: bool,
    *,
    has_group: bool,
) -> None:
    count, last = 0, time.monotonic()
    while max_messages is None or count < max_messages:
        message = consumer.poll(POLL_S)
        if message is None:
            sys.stdout.flush()
            if timeout_ms is not None and (time.monotonic() - last) * 1000 > timeout_ms:
                return
            continue
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF or (
                not has_group and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
            ):  # librdkafka looks for the group's coordinator even if nothing needs it
                continue
            raise KafkaException(error)
        sys.stdout.buffer.write(json_line(message) if json_output else line(message, form))
        if sys.stdout.isatty():
            sys.stdout.flush()
        count, last = count + 1, time.monotonic()
    sys.stdout.flush()


def line(message: Message, form: str) -> bytes:
    if form == "%v":
        return (message.value() or b"") + b"\n"
    parts = {
        "%t": (message.topic() or "").encode(),
        "%p": str(message.partition()).encode(),
        "%o": str(message.offset()).encode(),
        "%k": as_bytes(message.key()),
        "%v": as_bytes(message.value()),
        "%T": str(message.timestamp()[1]).encode(),
    }
    out = bytearray()
    at = 0
    while at < len(form):
        token = form[at : at + 2]
        out += parts.get(token, form[at].encode())
        at += 2 if token in parts else 1
    return bytes(out) + b"\n"


def as_bytes(content: bytes | str | None) -> bytes:
    return content.encode() if isinstance(content, str) else content or b""


def json_line(message: Message) -> bytes:
    def text(content: Any) -> str | None:
        return None if content is None else as_bytes(content).decode("utf-8", "backslashreplace")

    row = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": text(message.key()),
        "value": text(message.value()),
    }
    return json.dumps(row).encode() + b"\n"
