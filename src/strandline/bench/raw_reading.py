"""Reads a topic without decoding anything, so that not the client's work is measured but the cluster's."""

import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

from strandline.client.ask import Servers, config_of
from strandline.client.cluster import EARLIEST, LATEST, Cluster

READ_BYTES = 4 << 20  # of each partition in one Fetch


def raw_throughput(cluster: Servers, topic: str, partitions: int) -> float:
    """MB/s of all bytes of the topic, read by a process of its own: this one's lock is not measured either."""
    with ProcessPoolExecutor(1, get_context("spawn")) as reader:
        size, seconds = reader.submit(read_all, cluster, topic, partitions).result()
    return size / 1e6 / seconds


def read_all(cluster: Servers, topic: str, partitions: int) -> tuple[int, float]:
    """Bytes and seconds of reading it once, all partitions at a time."""
    began = time.perf_counter()
    with ThreadPoolExecutor(partitions) as threads:
        sizes = list(threads.map(partial(read_partition, cluster, topic), range(partitions)))
    return sum(sizes), time.perf_counter() - began


def read_partition(servers: Servers, topic: str, partition: int) -> int:
    with Cluster(config_of(servers)) as cluster:
        ends = [cluster.list_offsets({(topic, partition): edge}) for edge in (EARLIEST, LATEST)]
        start, end = (found[topic, partition].offset for found in ends)
        return sum(len(one.records) for one in cluster.read(topic, partition, start, end, max_bytes=READ_BYTES))
