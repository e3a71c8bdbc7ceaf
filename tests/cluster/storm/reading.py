"""What is there in the end, read twice by others' code: by librdkafka over the network, and by kafka-python's and kio's
readers from the files of each node.
"""

import time
from hashlib import blake2b
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from tests.cluster.driving import quiet
from tests.cluster.kafka_files import batches_of

SILENCE_S = 60.0  # a reader that hears nothing for so long ends


class Unreadable(Exception):
    """The log could not be read to its end."""


def read_over_network(bootstrap: str, topic: str, partition: int) -> list[tuple[int, bytes]]:
    """All records below the high watermark of now."""
    consumer = Consumer(quiet(bootstrap, group_id="storm-judge", enable_auto_commit=False))
    try:
        where = TopicPartition(topic, partition, 0)
        low, high = consumer.get_watermark_offsets(where, timeout=SILENCE_S)
        consumer.assign([where])
        records: list[tuple[int, bytes]] = []
        heard = time.monotonic()
        while low < high and (not records or records[-1][0] < high - 1):
            for message in consumer.consume(10_000, 0.5):
                if message.error() is None:
                    records.append((message.offset(), message.value()))
                    heard = time.monotonic()
            if time.monotonic() > heard + SILENCE_S:
                raise Unreadable(f"{topic}-{partition}: {len(records)} records of {high} could be read")
        return records
    finally:
        consumer.close()


def segments_of(data: Path, topic: str, partition: int) -> list[Path]:
    return sorted((data / f"{topic}-{partition}").glob("*.log"))


def read_from_files(data: Path, topic: str, partition: int) -> list[tuple[int, bytes]]:
    return [
        (record_offset, bytes(record.value))
        for segment in segments_of(data, topic, partition)
        for batch in batches_of(segment)
        for record_offset, record in enumerate(batch.records, batch.base_offset)
    ]


def epochs_in_files(data: Path, topic: str, partition: int) -> dict[int, int]:
    """The producer epoch of each offset."""
    return {
        offset: batch.producer_epoch
        for segment in segments_of(data, topic, partition)
        for batch in batches_of(segment)
        for offset in range(batch.base_offset, batch.last_offset + 1)
    }


def digest_of(data: Path, topic: str, partition: int) -> str:
    """Of all bytes of the log: segments of replicas need not begin at the same offsets."""
    found = blake2b(digest_size=16)
    for segment in segments_of(data, topic, partition):
        found.update(segment.read_bytes())
    return found.hexdigest()
