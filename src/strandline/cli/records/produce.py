"""`strandline produce`: lines in, records out."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Any
from zlib import crc32

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from cyclopts import Parameter

from strandline.cli.admin.topics import key_value
from strandline.cli.connect import HERE, OfCluster, fail
from strandline.client.admin.topics import topic_names
from strandline.client.librdkafka import client_config, send, why


def produce(
    topic: str,
    *,
    acks: str = "all",
    key_separator: str | None = None,
    compression: str = "none",
    property_: Annotated[list[str] | None, Parameter(name="--property", negative="")] = None,
    acknowledged: str | None = None,
    cluster: OfCluster = HERE,
) -> None:
    """Write each line of standard input as one record. Exit status 1 if a record was not acknowledged.

    Parameters
    ----------
    acks
        0, 1 or all
    key_separator
        what separates key and value in a line; without it, records have no keys
    compression
        none, gzip, snappy, lz4 or zstd
    property_
        another property of librdkafka's producer, KEY=VALUE; may be repeated
    acknowledged
        append a line of JSON to this file for each acknowledged record (topic, partition, offset, crc32 of the value,
        time_ms), for `strandline pipeline audit`
    """
    topic_names(cluster.config)  # ends the command if nobody answers
    options: dict[str, Any] = {"acks": acks, "linger.ms": 5, "compression.type": compression}
    options.update(key_value(entry, "--property") for entry in property_ or [])
    try:
        producer = Producer(client_config(cluster.config, **options))
    except KafkaException as error:
        fail(why(error), "--property takes librdkafka's names for its producer", status=2)
    if sys.stdin.isatty():
        print(f"one record a line; Ctrl-D ends. Writing to {topic} at {cluster.bootstrap}", file=sys.stderr)
    with nullcontext() if acknowledged is None else acknowledgements(acknowledged) as noted:
        left, errors = produce_lines(producer, topic, key_separator, noted)
    if left or errors:
        detail = f": {errors[0]}" if errors else ""
        advice = f"they may be in the log or not; `strandline explain {topic}` says what is wrong with the topic"
        fail(f"{left + len(errors)} records were not acknowledged{detail}", advice)


def produce_lines(
    producer: Producer, topic: str, key_separator: str | None, noted: "Acknowledgements | None"
) -> tuple[int, list[str]]:
    """How many records nobody has heard of in the end, and why others were refused."""
    errors: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            errors.append(error.str())
        elif noted is not None:
            noted.note(message)

    try:
        for line in sys.stdin.buffer:
            key, value = split(line.removesuffix(b"\n"), key_separator)
            send(producer, topic, key, value, delivered)
            if noted is not None:
                noted.write()
    except KeyboardInterrupt:
        pass  # what was read is still written
    return producer.flush(30), errors


class Acknowledgements:
    """Whole lines at the end of a file: whatever ends this process, none is torn."""

    def __init__(self, file: int) -> None:
        self.file = file
        self.lines: list[bytes] = []

    def note(self, message: Message) -> None:
        value = message.value()
        row = {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "crc32": None if value is None else crc32(value),
            "time_ms": time.time_ns() // 1_000_000,
        }
        offset = message.offset()
        if offset is not None and offset >= 0:  # acks=0 has none
            self.lines.append(json.dumps(row).encode() + b"\n")

    def write(self) -> None:
        if self.lines:
            content = memoryview(b"".join(self.lines))
            self.lines.clear()
            while len(content):
                content = content[os.write(self.file, content) :]


@contextmanager
def acknowledgements(path: str) -> Iterator[Acknowledgements]:
    """What came is in the file, durably, when the block ends."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}", "--acknowledged names a file", status=2)
    noted = Acknowledgements(file)
    try:
        yield noted
    finally:
        noted.write()
        os.fsync(file)
        os.close(file)


def split(line: bytes, separator: str | None) -> tuple[bytes | None, bytes]:
    if separator is None:
        return None, line
    key, found, value = line.partition(separator.encode())
    if not found:
        advice = "each line needs it: KEY, separator, VALUE. Without --key-separator records have no keys"
        fail(f"no key separator '{separator}' in the line {line[:80]!r}", advice, status=2)
    return key, value
