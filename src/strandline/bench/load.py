"""The load that `strandline bench` puts on a cluster, and what it measures. Works with any Kafka-compatible cluster.

The generator must cost little, since it shares the machine: the payload is built once, and only one record in
`SAMPLE_EVERY` has a delivery callback. With a rate every record has one.
"""

import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from struct import Struct

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from strandline.base.value import Value
from strandline.bench.raw_reading import raw_throughput
from strandline.bench.topic import bench_topic
from strandline.bench.usage import Usage, usage, used_between
from strandline.client.ask import Servers
from strandline.client.librdkafka import addresses, client_config

SAMPLE_EVERY = 64
STAMP = Struct(">q")
Heard = Callable[[KafkaError | None, Message], None]
PERCENTILES = (50.0, 95.0, 99.0, 99.9)


class LoadConfig(Value, frozen=True):
    record_size: int
    acks: str
    linger_ms: float
    batch_bytes: int
    partitions: int
    replication_factor: int
    rate: int  # records a second; 0: as many as it takes
    seconds: float
    warmup_s: float
    consume: bool
    raw: bool = False  # what `consume` reads is not decoded
    pids: tuple[int, ...] = ()


def steady(rate: int, seconds: float, record_size: int, partitions: int, replication_factor: int) -> LoadConfig:
    """Records at a rate, each sent at once, and measured from the first one on."""
    return LoadConfig(
        record_size=record_size,
        acks="all",
        linger_ms=0,
        batch_bytes=1_000_000,
        partitions=partitions,
        replication_factor=replication_factor,
        rate=rate,
        seconds=seconds,
        warmup_s=0,
        consume=False,
    )


class Latency(Value, frozen=True):
    """Milliseconds."""

    percentiles: tuple[float, ...]
    max: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Latency | None":
        if not seconds:
            return None
        ordered = sorted(seconds)
        picks = (ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))] for p in PERCENTILES)
        return cls(tuple(1000 * pick for pick in picks), 1000 * ordered[-1])


class Measured(Value, frozen=True):
    bootstrap: str
    records: int
    errors: int
    write_mb_s: float
    records_s: float
    produce: Latency | None
    end_to_end: Latency | None  # with a rate and --consume
    read_mb_s: float | None  # without a rate, with --consume
    processes: tuple[Usage, ...]  # those of `pids`, over the span that counts


class Sampler:
    """Collects the latencies of records from the moment `is_on` is set."""

    def __init__(self) -> None:
        self.is_on = False
        self.latencies: list[float] = []
        self.errors = 0

    def sent(self, at: float) -> "Sample":
        return Sample(self, at)


class Sample:
    """One record's delivery callback."""

    __slots__ = ("at", "sampler")

    def __init__(self, sampler: Sampler, at: float) -> None:
        self.sampler = sampler
        self.at = at

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.sampler.errors += 1
        elif self.sampler.is_on:
            self.sampler.latencies.append(time.perf_counter() - self.at)


def measure(cluster: Servers, config: LoadConfig) -> Measured:
    """Make a topic, load it, measure, delete it."""
    with bench_topic(cluster, config.partitions, config.replication_factor) as topic:
        if config.rate:
            return measure_rate(cluster, topic, config)
        return measure_throughput(cluster, topic, config)


def producer_of(cluster: Servers, config: LoadConfig) -> Producer:
    return Producer(
        client_config(
            cluster,
            **{
                "acks": config.acks,
                "linger.ms": config.linger_ms,
                "batch.size": config.batch_bytes,
                "batch.num.messages": 1_000_000,
                "message.max.bytes": max(1_000_000, config.record_size + 1000),
                "queue.buffering.max.messages": 500_000,
                "queue.buffering.max.kbytes": 256 * 1024,
            },
        )
    )


def measure_throughput(cluster: Servers, topic: str, config: LoadConfig) -> Measured:
    producer = producer_of(cluster, config)
    sampler = Sampler()
    payload = os.urandom(config.record_size)
    write(producer, topic, payload, config.warmup_s, sampler)
    producer.flush(60)
    sampler.is_on = True
    end_before = total_end(cluster, topic, config)
    idle = [usage(pid) for pid in config.pids]
    started = time.perf_counter()
    count = write(producer, topic, payload, config.seconds, sampler)
    left = producer.flush(60)
    span = time.perf_counter() - started
    processes = tuple(used_between(before, usage(before.pid)) for before in idle)
    acknowledged = count - left
    if config.acks != "0":
        # Most records have no callback that would report a failure; the log knows how many arrived.
        acknowledged = min(acknowledged, total_end(cluster, topic, config) - end_before)
    megabytes = acknowledged * config.record_size / 1e6
    read = None
    if config.consume:
        raw = config.raw
        read = raw_throughput(cluster, topic, config.partitions) if raw else read_throughput(cluster, topic, config)
    return Measured(
        addresses(cluster),
        acknowledged,
        count - acknowledged,
        megabytes / span,
        acknowledged / span,
        Latency.of(sampler.latencies),
        None,
        read,
        processes,
    )


def write(producer: Producer, topic: str, payload: bytes, span_s: float, sampler: Sampler) -> int:
    """As fast as the cluster takes it, for `span_s`; how many records were handed over."""
    until = time.perf_counter() + span_s
    count = 0
    while (now := time.perf_counter()) < until:
        try:
            producer.produce(topic, payload, on_delivery=sampler.sent(now))
            count += 1
            for _ in range(SAMPLE_EVERY - 1):
                producer.produce(topic, payload)
                count += 1
        except BufferError:
            producer.poll(0.01)
    return count


def measure_rate(cluster: Servers, topic: str, config: LoadConfig) -> Measured:
    producer = producer_of(cluster, config)
    sampler = Sampler()
    listener = Listener(cluster, topic, config) if config.consume else None
    pace(producer, topic, config, config.warmup_s, sampler.sent)
    sampler.is_on = True
    if listener is not None:
        listener.is_on = True
    idle = [usage(pid) for pid in config.pids]
    started = time.perf_counter()
    count = pace(producer, topic, config, config.seconds, sampler.sent)
    producer.flush(30)
    span = time.perf_counter() - started
    processes = tuple(used_between(before, usage(before.pid)) for before in idle)
    end_to_end = listener.stop() if listener is not None else []
    return Measured(
        addresses(cluster),
        count,
        sampler.errors,
        count * config.record_size / 1e6 / span,
        count / span,
        Latency.of(sampler.latencies),
        Latency.of(end_to_end),
        None,
        processes,
    )


def pace(producer: Producer, topic: str, config: LoadConfig, span_s: float, sent: Callable[[float], Heard]) -> int:
    """Records at an even rate, each with its time in it. `sent` makes a record's delivery callback, of when the record
    was due: its latency counts from then. Returns how many there were."""
    filler = os.urandom(max(0, config.record_size - STAMP.size))
    started = time.perf_counter()
    count = 0
    while (passed := time.perf_counter() - started) < span_s:
        due = started + count / config.rate
        if passed < count / config.rate:
            producer.poll(max(0.0, min(0.001, due - time.perf_counter())))  # a negative wait would be one without end
            continue
        payload = STAMP.pack(int(due * 1e9)) + filler
        try:
            producer.produce(topic, payload, on_delivery=sent(due))
            count += 1
        except BufferError:
            producer.poll(0.01)
        producer.poll(0)
    return count


class Listener:
    """Reads in a thread of its own; how old is each record when it arrives?"""

    def __init__(self, cluster: Servers, topic: str, config: LoadConfig) -> None:
        self.is_on = False
        self.running = True
        self.latencies: list[float] = []
        options = {"group.id": topic, "fetch.wait.max.ms": 500, "enable.auto.commit": False}
        self.consumer = Consumer(client_config(cluster, **options))
        self.consumer.assign([TopicPartition(topic, p, 0) for p in range(config.partitions)])
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        while self.running:
            message = self.consumer.poll(0.1)
            if message is None or message.error() is not None or not self.is_on:
                continue
            value = message.value()
            assert isinstance(value, bytes)
            self.latencies.append(time.perf_counter() - STAMP.unpack_from(value)[0] / 1e9)

    def stop(self) -> list[float]:
        self.running = False
        self.thread.join()
        self.consumer.close()
        return self.latencies


def total_end(cluster: Servers, topic: str, config: LoadConfig) -> int:
    """How many records the topic has been given, by the ends of its logs."""
    consumer = Consumer(client_config(cluster, **{"group.id": topic, "enable.auto.commit": False}))
    try:
        ends = (consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10) for p in range(config.partitions))
        return sum(high for _, high in ends)
    finally:
        consumer.close()


def read_throughput(cluster: Servers, topic: str, config: LoadConfig) -> float:
    """MB/s of reading the whole topic from its beginning."""
    options = {
        "group.id": topic,
        "enable.auto.commit": False,
        "fetch.message.max.bytes": 8 << 20,
        # Else the client stops for a second whenever its own queue is full, and that is what would be measured.
        "queued.min.messages": 1_000_000,
        "queued.max.messages.kbytes": 256 * 1024,
        "fetch.queue.backoff.ms": 5,
    }
    consumer = Consumer(client_config(cluster, **options))
    total = total_end(cluster, topic, config)
    consumer.assign([TopicPartition(topic, p, 0) for p in range(config.partitions)])
    count, started = 0, 0.0
    while count < total:
        messages = consumer.consume(10_000, 5.0)
        started = started or time.perf_counter()
        if not messages:
            break
        count += len(messages)
    span = time.perf_counter() - started
    consumer.close()
    return count * config.record_size / 1e6 / span if span > 0 else 0.0


def median_ratio(ours: Sequence[Measured], theirs: Sequence[Measured]) -> float:
    """Of written bytes a second, round by round."""
    return statistics.median(a.write_mb_s / b.write_mb_s for a, b in zip(ours, theirs, strict=True) if b.write_mb_s)
