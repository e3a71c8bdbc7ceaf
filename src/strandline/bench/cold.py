"""Does a reader of old records hurt a producer? What `strandline bench cold` does to a cluster, and what it measures.

The reader is a process of its own and decodes nothing, so that neither Python's lock nor a client's work is measured.
"""

import subprocess
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

from strandline.base.value import Value
from strandline.bench.load import Latency, LoadConfig, Sampler, pace, producer_of
from strandline.client.admin.topics import create_topic, delete_topics
from strandline.client.ask import config_of
from strandline.client.cluster import EARLIEST, LATEST, Cluster
from strandline.client.config import ClientConfig
from strandline.client.librdkafka import addresses

PARTITIONS = 3
HOT_RECORD_BYTES = 1024
OLD_RECORD_BYTES = 10_240
READ_BYTES = 4 << 20  # of each partition in one Fetch
FLUSH_S = 300

Say = Callable[[str], None]


class ColdConfig(Value, frozen=True):
    megabytes: int  # of old records
    rate: int  # records a second of the producer that must not be hurt
    seconds: float  # of each measurement
    replication_factor: int  # of what it writes to
    drop: str  # a shell command that empties the page cache


class ColdMeasured(Value, frozen=True):
    bootstrap: str
    before: Latency | None
    meanwhile: Latency | None
    read_mb_s: float


class NotDropped(Exception):
    """The page cache was not emptied: the message says why."""


def measure_cold(cluster: ClientConfig, config: ColdConfig, say: Say) -> ColdMeasured:
    """Write what becomes old, measure a producer without a reader, drop the cache, and measure both together."""
    old, hot = (f"strandline-bench-{what}-{uuid.uuid4().hex[:8]}" for what in ("old", "hot"))
    create_topic(cluster, old, PARTITIONS, 1)
    try:
        create_topic(cluster, hot, PARTITIONS, config.replication_factor)
        say(f"writing {config.megabytes} MB")
        fill(cluster, old, config.megabytes)
        say("a producer alone")
        before = latency(cluster, hot, config)
        drop_cache(config.drop)
        say("a producer, and a reader of old records")
        with ProcessPoolExecutor(1, get_context("spawn")) as reader:
            reading = reader.submit(read_all, cluster, old)
            meanwhile = latency(cluster, hot, config)
            size, seconds = reading.result()
    finally:
        delete_topics(cluster, [old, hot])
    return ColdMeasured(addresses(cluster), before, meanwhile, size / 1e6 / seconds)


def load(config: ColdConfig, record_size: int) -> LoadConfig:
    return LoadConfig(
        record_size=record_size,
        acks="all",
        linger_ms=0,
        batch_bytes=1_000_000,
        partitions=PARTITIONS,
        replication_factor=config.replication_factor,
        rate=config.rate,
        seconds=config.seconds,
        warmup_s=0,
        consume=False,
    )


def fill(cluster: ClientConfig, topic: str, megabytes: int) -> None:
    producer = producer_of(cluster, load(ColdConfig(megabytes, 1, 1, 1, ""), OLD_RECORD_BYTES))
    value = bytes(range(256)) * (OLD_RECORD_BYTES // 256)
    for number in range(megabytes * 1_000_000 // OLD_RECORD_BYTES):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.01)
    if left := producer.flush(FLUSH_S):
        raise TimeoutError(f"{left} records are not acknowledged after {FLUSH_S} s")


def latency(cluster: ClientConfig, topic: str, config: ColdConfig) -> Latency | None:
    sampler = Sampler()
    sampler.is_on = True
    wanted = load(config, HOT_RECORD_BYTES)
    producer = producer_of(cluster, wanted)
    pace(producer, topic, wanted, config.seconds, sampler)
    producer.flush(FLUSH_S)
    return Latency.of(sampler.latencies)


def drop_cache(command: str) -> None:
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # the user's
    if done.returncode:
        raise NotDropped(done.stderr.strip() or f"exit status {done.returncode}")


def read_all(config: ClientConfig, topic: str) -> tuple[int, float]:
    """Bytes and seconds of reading it once, all partitions at a time."""
    began = time.perf_counter()
    with ThreadPoolExecutor(PARTITIONS) as threads:
        sizes = list(threads.map(partial(read_partition, config, topic), range(PARTITIONS)))
    return sum(sizes), time.perf_counter() - began


def read_partition(config: ClientConfig, topic: str, partition: int) -> int:
    with Cluster(config_of(config)) as cluster:
        ends = [cluster.list_offsets({(topic, partition): edge}) for edge in (EARLIEST, LATEST)]
        start, end = (found[topic, partition].offset for found in ends)
        return sum(len(one.records) for one in cluster.read(topic, partition, start, end, max_bytes=READ_BYTES))
