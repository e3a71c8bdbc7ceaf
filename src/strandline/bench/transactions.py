"""How many transactions a second, and how many megabytes in them: the load of `strandline bench transactions`."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from confluent_kafka import Producer

from strandline.base.value import Value
from strandline.bench.load import Sampler, write
from strandline.bench.topic import bench_topic
from strandline.client.config import ClientConfig
from strandline.client.librdkafka import addresses, client_config

COMMIT_S = 60
QUEUE_KB = 8 << 10  # in the client: a transaction that lasts 100 ms should not have to wait for a second's records


class TransactionLoad(Value, frozen=True):
    producers: int
    partitions: int  # of the topic that all of them write to
    replication_factor: int
    record_size: int  # bytes of a value
    batch_bytes: int  # largest size of a batch
    hold_ms: int  # each transaction writes for so long; 0: one record
    seconds: float


class Transacted(Value, frozen=True):
    bootstrap: str
    producers: int
    hold_ms: int
    commits_s: float
    mb_s: float
    commit_ms: float  # of a commit call, on average


class Count(NamedTuple):
    commits: int
    records: int
    committing_s: float


def measure_transactions(cluster: ClientConfig, load: TransactionLoad) -> Transacted:
    with (
        bench_topic(cluster, load.partitions, load.replication_factor) as topic,
        ThreadPoolExecutor(load.producers) as threads,
    ):
        producers = list(threads.map(lambda number: ready(cluster, topic, number, load), range(load.producers)))
        began = time.perf_counter()
        counts = list(threads.map(lambda producer: work(producer, topic, load, began + load.seconds), producers))
        span = time.perf_counter() - began
    commits = sum(one.commits for one in counts)
    return Transacted(
        addresses(cluster),
        load.producers,
        load.hold_ms,
        commits / span,
        sum(one.records for one in counts) * load.record_size / 1e6 / span,
        1000 * sum(one.committing_s for one in counts) / max(commits, 1),
    )


def ready(cluster: ClientConfig, topic: str, number: int, load: TransactionLoad) -> Producer:
    """A producer that knows its coordinator and its topic: its first transaction does not count."""
    options = {
        "transactional.id": f"{topic}-{number}",
        "batch.size": load.batch_bytes,
        "queue.buffering.max.kbytes": QUEUE_KB,
    }
    producer = Producer(client_config(cluster, **options))
    producer.init_transactions(COMMIT_S)
    producer.begin_transaction()
    producer.produce(topic, b"")
    producer.commit_transaction(COMMIT_S)
    return producer


def work(producer: Producer, topic: str, load: TransactionLoad, until: float) -> Count:
    value = bytes(load.record_size)
    commits = records = 0
    committing = 0.0
    while time.perf_counter() < until:
        producer.begin_transaction()
        producer.produce(topic, value)
        records += 1 + write(producer, topic, value, load.hold_ms / 1000, Sampler())
        began = time.perf_counter()
        producer.commit_transaction(COMMIT_S)
        committing += time.perf_counter() - began
        commits += 1
    return Count(commits, records, committing)
