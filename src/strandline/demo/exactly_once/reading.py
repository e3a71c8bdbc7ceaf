"""Readers of the bank's books: one that follows while the loop runs, one that reads all in the end."""

import time
from collections import Counter

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from strandline.client.librdkafka import client_config
from strandline.demo.exactly_once.bank import BOOKING_PARTITIONS, TRANSFER_PARTITIONS, TRANSFERS, Booking, booking_of
from strandline.demo.exactly_once.count import Place
from strandline.demo.exactly_once.worker import CLIENT, place_of

PATIENCE_S = 60.0
ASK_S = 5.0


class Stalled(Exception):
    """Nothing goes on any more; the message says what was waited for."""


class Reader:
    """Reads the bookings of one topic from the start, and remembers each."""

    def __init__(self, bootstrap: str, topic: str, isolation: str = "read_committed") -> None:
        self.topic = topic
        self.found: dict[Place, Booking] = {}
        self.transfers: set[int] = set()
        self.by_worker: Counter[int] = Counter()
        self.positions = dict.fromkeys(range(BOOKING_PARTITIONS), 0)
        options = {"group.id": "readers", "enable.auto.commit": False, "enable.partition.eof": True}
        settings = {**options, "isolation.level": isolation, **CLIENT}
        self.consumer = Consumer(client_config(bootstrap, **settings))
        self.places = [TopicPartition(topic, partition, 0) for partition in range(BOOKING_PARTITIONS)]
        self.consumer.assign(self.places)

    def poll(self, timeout_s: float) -> None:
        for message in self.consumer.consume(1_000, timeout_s):
            error = message.error()
            if error is None:
                booking = booking_of(message.value())
                partition, offset = place = place_of(message)
                self.found[place] = booking
                self.positions[partition] = offset + 1
                self.transfers.add(booking.transfer)
                self.by_worker[booking.worker] += 1
            elif error.code() == KafkaError._PARTITION_EOF:  # behind markers too, which are no messages
                partition, offset = place_of(message)
                self.positions[partition] = offset

    def ends(self) -> dict[int, int]:
        """What this reader may read at most, now: the last stable offsets if it reads what is committed."""
        asked = {p.partition: self.consumer.get_watermark_offsets(p, timeout=ASK_S) for p in self.places}
        return {partition: answer[1] for partition, answer in asked.items() if answer is not None}

    def read_to(self, ends: dict[int, int]) -> None:
        until = time.monotonic() + PATIENCE_S
        while any(self.positions[partition] < end for partition, end in ends.items()):
            if time.monotonic() > until:
                raise Stalled(f"{self.topic} cannot be read up to {ends}, but to {self.positions}")
            self.poll(0.1)

    def close(self) -> None:
        self.consumer.close()


def has_no_open_transaction(committed: Reader, uncommitted: Reader) -> bool:
    """Whether no transaction is left open: everything that is written is stable."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            if committed.ends() == uncommitted.ends():
                return True
        except KafkaException:
            pass  # asked again
        time.sleep(0.1)
    return False


def is_all_committed(group: Consumer, transfers: int) -> bool:
    """Whether the group has committed offsets behind all transfers."""
    places = [TopicPartition(TRANSFERS, partition) for partition in range(TRANSFER_PARTITIONS)]
    try:
        return sum(max(0, place.offset) for place in group.committed(places, timeout=ASK_S)) == transfers
    except KafkaException:
        return False


def group_reader(bootstrap: str, group: str) -> Consumer:
    """Does not join the group."""
    settings = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed", **CLIENT}
    return Consumer(client_config(bootstrap, **settings))
