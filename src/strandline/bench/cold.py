"""Does a reader of old records hurt a producer? What `strandline bench cold` does to a cluster, and what it measures.

The reader is a process of its own and decodes nothing, so that neither Python's lock nor a client's work is measured.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from strandline.base.value import Value
from strandline.bench.load import Latency, Sampler, pace, producer_of, steady
from strandline.bench.raw_reading import read_all
from strandline.bench.shell import run
from strandline.bench.topic import bench_topic
from strandline.client.config import ClientConfig
from strandline.client.librdkafka import addresses

PARTITIONS = 3
HOT_RECORD_BYTES = 1024
OLD_RECORD_BYTES = 10_240
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


def measure_cold(cluster: ClientConfig, config: ColdConfig, say: Say) -> ColdMeasured:
    """Write what becomes old, measure a producer without a reader, drop the cache, and measure both together. Raises
    CommandFailed if the cache is not dropped."""
    with (
        bench_topic(cluster, PARTITIONS, 1) as old,
        bench_topic(cluster, PARTITIONS, config.replication_factor) as hot,
    ):
        say(f"writing {config.megabytes} MB")
        fill(cluster, old, config.megabytes)
        say("a producer alone")
        before = latency(cluster, hot, config)
        run(config.drop)
        say("a producer, and a reader of old records")
        with ProcessPoolExecutor(1, get_context("spawn")) as reader:
            reading = reader.submit(read_all, cluster, old, PARTITIONS)
            meanwhile = latency(cluster, hot, config)
            size, seconds = reading.result()
    return ColdMeasured(addresses(cluster), before, meanwhile, size / 1e6 / seconds)


def fill(cluster: ClientConfig, topic: str, megabytes: int) -> None:
    producer = producer_of(cluster, steady(1, 1, OLD_RECORD_BYTES, PARTITIONS, 1))
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
    wanted = steady(config.rate, config.seconds, HOT_RECORD_BYTES, PARTITIONS, config.replication_factor)
    producer = producer_of(cluster, wanted)
    pace(producer, topic, wanted, config.seconds, sampler.sent)
    producer.flush(FLUSH_S)
    return Latency.of(sampler.latencies)
