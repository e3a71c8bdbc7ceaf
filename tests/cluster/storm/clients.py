"""The clients of a storm: idempotent producers, group consumers that commit, and one who reads what is committed. All
are librdkafka's; what they were told is the evidence.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from tests.cluster.driving import quiet
from tests.cluster.storm.checker import NO_OFFSET, Committed, Evidence, Sent, value_of

TOPIC = "storm"
GROUP = "storm"
ABANDONED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
IN_FLIGHT_MAX = 2_000  # records that wait for their acknowledgement
FLUSH_S = 180.0
# confluent-kafka's commit that waits may wait for ever (its issue 1801), whatever brokers answer later.
COMMIT_S = 120.0
# How long each waits for an answer: one gives up while a leader is paused, and sends again; one waits it out. And how
# long it lets a leader wait for the others: one is told often that time is up for what is in the log.
SOCKET_MS = (2_000, 6_000, 30_000)
REQUEST_MS = (10_000, 700, 30_000)
CODECS = ("none", "lz4", "zstd")


class Worker:
    """A thread that repeats one step until it is told to stop."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_stopping = threading.Event()
        self.broke: BaseException | None = None
        self.thread = threading.Thread(target=self.run, name=name, daemon=True)

    def run(self) -> None:
        try:
            while not self.is_stopping.is_set():
                self.step()
        except BaseException as error:
            self.broke = error
        finally:
            self.end()

    def step(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        pass

    def stop(self) -> None:
        self.is_stopping.set()


class Writer(Worker):
    """One after another it is several producers: now and then it abandons one, with all that this one has in flight."""

    def __init__(self, number: int, bootstrap: str, evidence: Evidence, partitions: int, per_second: float) -> None:
        super().__init__(f"writer-{number}")
        self.number = number
        self.bootstrap = bootstrap
        self.evidence = evidence
        self.partitions = partitions
        self.per_second = per_second
        self.rng = Random(f"{evidence.seed} writer {number}")
        self.wants_another = threading.Event()
        self.lives = 0
        self.acknowledged = 0
        self.abandoned = 0
        self.failures: list[str] = []  # other than what was abandoned
        self.fatal: list[str] = []
        self.gaps_s: dict[int, float] = {}  # by partition: the longest time without an acknowledgement
        self.last_at = dict.fromkeys(range(partitions), time.monotonic())
        self.next_at = time.monotonic()
        self.producer = self.made()

    def made(self) -> Producer:
        self.lives += 1
        self.who = f"p{self.number}.{self.lives}"
        settings = {
            "enable.idempotence": True,
            "linger.ms": self.rng.choice((0, 2, 10)),
            "batch.num.messages": self.rng.choice((1, 20, 10_000)),
            "compression.type": CODECS[self.number % len(CODECS)],
            "socket.timeout.ms": SOCKET_MS[self.number % len(SOCKET_MS)],
            "request.timeout.ms": REQUEST_MS[self.number % len(REQUEST_MS)],
            "message.timeout.ms": 0,  # never: each is acknowledged, or its producer ends
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 300,
        }
        return Producer({**quiet(self.bootstrap), **settings, "error_cb": self.complained})

    def complained(self, error: KafkaError) -> None:
        if error.fatal() and not self.wants_another.is_set():
            self.fatal.append(f"{self.who}: {error}")
            self.wants_another.set()

    def step(self) -> None:
        if self.wants_another.is_set():
            self.wants_another.clear()
            self.abandon()
        try:
            self.work()
        except KafkaException as error:  # it has ended by itself, and another one begins
            self.complained(error.args[0])

    def work(self) -> None:
        if len(self.producer) < IN_FLIGHT_MAX and time.monotonic() >= self.next_at:
            self.next_at = max(self.next_at + 1 / self.per_second, time.monotonic() - 1)
            self.send(self.rng.randrange(self.partitions))
        self.producer.poll(min(0.02, max(0.0, self.next_at - time.monotonic())))

    def send(self, partition: int) -> None:
        sent = self.evidence.sent.setdefault((self.who, partition), Sent())
        sequence = sent.count
        sent.count += 1  # before anything can be sent
        value = value_of(self.evidence.seed, self.who, partition, sequence)
        self.producer.produce(TOPIC, value, partition=partition, on_delivery=self.delivered(sent, sequence))

    def delivered(self, sent: Sent, sequence: int) -> Callable[[Any, Any], None]:
        def on_delivery(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                self.abandoned += 1
                if error.code() not in ABANDONED and not self.wants_another.is_set():
                    self.failures.append(f"{self.who}: {error}")
                return
            offset = message.offset()
            if sequence in sent.acknowledged:
                self.failures.append(f"{self.who}: record {sequence} was acknowledged twice")
            sent.acknowledged[sequence] = NO_OFFSET if offset is None or offset < 0 else offset
            self.acknowledged += 1
            self.seen(message.partition())

        return on_delivery

    def seen(self, partition: int) -> None:
        now = time.monotonic()
        self.gaps_s[partition] = max(self.gaps_s.get(partition, 0.0), now - self.last_at[partition])
        self.last_at[partition] = now

    def abandon(self) -> None:
        with suppress(KafkaException):  # one that has ended by itself may refuse
            self.producer.purge(in_queue=True, in_flight=True, blocking=True)
            self.producer.flush(1)
        self.producer = self.made()

    def end(self) -> None:
        left = self.producer.flush(FLUSH_S)
        if left:
            self.failures.append(f"{self.who}: {left} records were neither acknowledged nor refused")


class Reader(Worker):
    """A member of the group: it reads, commits, and notes what it was shown."""

    def __init__(self, number: int, bootstrap: str, evidence: Evidence) -> None:
        super().__init__(f"reader-{number}")
        self.evidence = evidence
        self.read = 0
        self.commits_since: float | None = None  # the moment in which the commit under way began
        self.consumer = Consumer(
            {
                **quiet(bootstrap),
                "group.id": GROUP,
                "client.id": self.name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6_000,
                "max.poll.interval.ms": 60_000,  # one that hangs leaves the group
                "heartbeat.interval.ms": 500,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 300,
            }
        )
        self.consumer.subscribe([TOPIC])

    def step(self) -> None:
        messages = self.consumer.consume(500, 0.3)
        offsets: dict[int, int] = {}
        for message in messages:
            if message.error() is not None:
                continue
            partition, offset = message.partition(), message.offset()
            offsets[partition] = offset + 1
            self.evidence.show(partition, offset, message.value())
            self.read += 1
        if offsets:
            self.commit([TopicPartition(TOPIC, partition, offset) for partition, offset in offsets.items()])

    @property
    def hangs(self) -> bool:
        began = self.commits_since
        return began is not None and time.monotonic() > began + COMMIT_S

    def commit(self, offsets: list[TopicPartition]) -> None:
        self.commits_since = began = time.monotonic()
        try:
            done = self.consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            return  # nobody knows whether it was done
        finally:
            self.commits_since = None
        ended = time.monotonic()
        for one in done or ():
            if one.error is None:
                noted = Committed(began, ended, one.offset, self.name)
                self.evidence.commits.setdefault(one.partition, []).append(noted)

    def end(self) -> None:
        self.consumer.close()


class Observer(Worker):
    """It reads the group's committed offsets, again and again, and is no member."""

    def __init__(self, bootstrap: str, evidence: Evidence, partitions: int) -> None:
        super().__init__("observer")
        self.evidence = evidence
        self.asked = [TopicPartition(TOPIC, partition) for partition in range(partitions)]
        self.last: dict[int, int] = {}
        self.consumer = Consumer({**quiet(bootstrap), "group.id": GROUP, "enable.auto.commit": False})

    def step(self) -> None:
        self.look()
        self.is_stopping.wait(0.3)

    def look(self) -> None:
        began = time.monotonic()
        try:
            found = self.consumer.committed(self.asked, timeout=5.0)
        except KafkaException:
            return
        ended = time.monotonic()
        for one in found:
            if one.error is None:
                # None is committed: librdkafka says -1001.
                noted = Committed(began, ended, max(one.offset, -1), "the observer", is_read=True)
                self.evidence.commits.setdefault(one.partition, []).append(noted)
                self.last[one.partition] = noted.offset

    def end(self) -> None:
        self.consumer.close()
