"""`strandline produce`: lines in, records out."""

import sys
from typing import Annotated, Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from cyclopts import Parameter

from strandline.cli.connect import DEFAULT_BOOTSTRAP, Bootstrap, admin, client_config, fail, why
from strandline.cli.topics import key_value


def produce(
    topic: str,
    *,
    acks: str = "all",
    key_separator: str | None = None,
    compression: str = "none",
    property_: Annotated[list[str] | None, Parameter(name="--property", negative="")] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Write each line of the input as one record.

    Ends with an error if a record was not acknowledged.

    Parameters
    ----------
    acks
        0, 1 or all
    key_separator
        what stands between key and value of a line; without it there are no keys
    compression
        none, gzip, snappy, lz4 or zstd
    property_
        any further setting of librdkafka's producer, key=value, repeatable
    """
    admin(bootstrap)
    options: dict[str, Any] = {"acks": acks, "linger.ms": 5, "compression.type": compression}
    options.update(key_value(entry, "--property") for entry in property_ or [])
    try:
        producer = Producer(client_config(bootstrap, **options))
    except KafkaException as error:
        fail(why(error), "--property takes librdkafka's names for its producer", status=2)
    errors: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            errors.append(error.str())

    if sys.stdin.isatty():
        print(f"one record a line; Ctrl-D ends. Writing to {topic} at {bootstrap}", file=sys.stderr)
    try:
        for line in sys.stdin.buffer:
            key, value = split(line.removesuffix(b"\n"), key_separator)
            send(producer, topic, key, value, delivered)
    except KeyboardInterrupt:
        pass  # what was read is still written
    left = producer.flush(30)
    if left or errors:
        detail = f": {errors[0]}" if errors else ""
        fail(f"{left + len(errors)} records were not acknowledged{detail}")


def split(line: bytes, separator: str | None) -> tuple[bytes | None, bytes]:
    if separator is None:
        return None, line
    key, found, value = line.partition(separator.encode())
    if not found:
        fail(f"no key separator '{separator}' in the line {line[:80]!r}", status=2)
    return key, value


def send(producer: Producer, topic: str, key: bytes | None, value: bytes, delivered: Any) -> None:
    """Hand over one record, waiting while the client's queue is full."""
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=delivered)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return
