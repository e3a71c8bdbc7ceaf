"""One worker of the bank, a process of its own: it reads transfers, books each on both sides, and commits its offsets.

With transactions the bookings and the offsets count together, or neither does. Without them the loop is the same: it
books, waits until the bookings are acknowledged, and then commits the offsets.
"""

import os
import select
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

import msgspec
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from strandline.base.value import Value
from strandline.client.librdkafka import client_config
from strandline.demo.exactly_once.bank import TRANSFERS, booking_bytes, booking_partition, bookings, transfer_of
from strandline.server import lifeline

BATCH = 20  # transfers of one transaction
CALL_S = 10.0  # how long one call of librdkafka may last before it is repeated
HANGS_S = 4.0  # so long sending offsets never lasts, unless librdkafka hangs
CLIENT = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500, "retry.backoff.ms": 50}
GROUP = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "session.timeout.ms": 2_000,
    "heartbeat.interval.ms": 400,
}
TRANSACTION_MS = 30_000  # a worker that is killed is started again much earlier, and aborts what it had begun


class Job(Value, frozen=True):
    bootstrap: str
    group: str
    topic: str  # of the bookings
    worker: int
    transactional_id: str  # empty: without transactions
    pace_ms: float  # how long a transfer takes


class Worker:
    def __init__(self, job: Job) -> None:
        self.job = job
        settings: dict[str, object] = {"linger.ms": 2, "enable.idempotence": True, **CLIENT}
        if job.transactional_id:
            settings |= {"transactional.id": job.transactional_id, "transaction.timeout.ms": TRANSACTION_MS}
        self.producer = Producer(client_config(job.bootstrap, acks="all", **settings))
        self.consumer = Consumer(client_config(job.bootstrap, **{"group.id": job.group, **GROUP, **CLIENT}))

    def run(self) -> NoReturn:
        """Until somebody kills it."""
        if self.job.transactional_id:
            insist(self.producer.init_transactions)
        self.consumer.subscribe([TRANSFERS])
        apply = self.apply_in_transaction if self.job.transactional_id else self.apply
        while True:
            messages = [message for message in self.consumer.consume(BATCH, 0.1) if message.error() is None]
            if messages:
                apply(messages)

    def apply_in_transaction(self, messages: Sequence[Message]) -> None:
        self.producer.begin_transaction()
        try:
            self.book(messages)
            self.send_offsets(ends_of(messages))
            insist(self.producer.commit_transaction)
        except KafkaException as error:
            print("the transaction failed:", error, flush=True)
            if error.args[0].fatal():
                raise
            insist(self.producer.abort_transaction)
            for start in starts_of(messages):
                self.consumer.seek(start)

    def send_offsets(self, ends: list[TopicPartition]) -> None:
        """librdkafka (2.16) can hang here, whatever the timeout, once the node that coordinated the group is no
        longer in the metadata. The worker then ends as if it were killed, and is started again (docs/clients.md)."""
        group = self.consumer.consumer_group_metadata()
        hanging = threading.Timer(HANGS_S, give_up, ("librdkafka hangs",))
        hanging.daemon = True
        hanging.start()
        try:
            insist(lambda timeout_s: self.producer.send_offsets_to_transaction(ends, group, timeout_s))
        finally:
            hanging.cancel()

    def apply(self, messages: Sequence[Message]) -> None:
        self.book(messages)
        while self.producer.flush(1.0):
            pass
        try:
            self.consumer.commit(offsets=ends_of(messages), asynchronous=False)
        except KafkaException as error:
            print("offsets are not committed:", error, flush=True)  # the next commit does it, here or elsewhere

    def book(self, messages: Sequence[Message]) -> None:
        for message in messages:
            time.sleep(self.job.pace_ms / 1000)
            for booking in bookings(transfer_of(message.value()), self.job.worker):
                partition = booking_partition(booking.account)
                self.producer.produce(self.job.topic, booking_bytes(booking), partition=partition)
            self.producer.poll(0)


def insist(call: Callable[[float], object]) -> None:
    """Call it again as long as librdkafka says that this is what to do. Whoever started the worker ends it."""
    while True:
        try:
            call(CALL_S)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


def give_up(why: str) -> NoReturn:
    """The group learns of it by the session timeout, as with a worker that was killed."""
    print("the worker gives up:", why, flush=True)
    os._exit(1)


def starts_of(messages: Sequence[Message]) -> list[TopicPartition]:
    """Where each partition's first message lies."""
    starts: dict[int, int] = {}
    for message in messages:
        partition, offset = place_of(message)
        starts.setdefault(partition, offset)
    return [TopicPartition(TRANSFERS, partition, offset) for partition, offset in starts.items()]


def ends_of(messages: Sequence[Message]) -> list[TopicPartition]:
    """What is read next in each partition."""
    ends = {partition: offset + 1 for partition, offset in map(place_of, messages)}
    return [TopicPartition(TRANSFERS, partition, offset) for partition, offset in ends.items()]


def place_of(message: Message) -> tuple[int, int]:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset


def end_with_starter() -> None:
    """A worker does not outlive whoever started it."""
    line = lifeline.inherited()
    if line is not None:

        def wait(end: int) -> None:
            select.select([end], [], [])  # never readable before it is closed
            os._exit(1)

        threading.Thread(target=wait, args=(line.end,), daemon=True).start()


def main() -> NoReturn:
    end_with_starter()
    worker = Worker(msgspec.json.decode(sys.argv[1], type=Job))
    try:
        worker.run()
    except KafkaException as error:
        give_up(str(error))


if __name__ == "__main__":
    main()
