"""Rows to be emitted, and what a topic holds of them."""

import time
from collections.abc import Iterator

import pyarrow as pa
from tests.cluster.client_topics import config_of, records_in

from strandline.client.cluster import LATEST, Cluster


def table(first: int, rows: int, *, size: int = 100) -> pa.Table:
    """Rows with the number as value, padded; every fourth has no key."""
    numbers = range(first, first + rows)
    keys = [None if number % 4 == 0 else b"key-%d" % (number % 50) for number in numbers]
    values = [b"%d" % number + b" " * size for number in numbers]
    return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})


def ends(bootstrap: str, topic: str) -> dict[int, int]:
    with Cluster(config_of(bootstrap)) as cluster:
        view = cluster.topics([topic])[topic]
        found = cluster.list_offsets({(topic, partition): LATEST for partition in view.partitions})
    return {at[1]: end.offset for at, end in found.items()}


def wait_rows(bootstrap: str, topic: str, rows: int, timeout_s: float = 60.0) -> int:
    """Until the topic has so many."""
    until = time.monotonic() + timeout_s
    with Cluster(config_of(bootstrap)) as cluster:
        view = cluster.topics([topic])[topic]
        asked = {(topic, partition): LATEST for partition in view.partitions}
        while True:
            total = sum(end.offset for end in cluster.list_offsets(asked).values())
            if total >= rows:
                return total
            assert time.monotonic() < until, f"{total} rows are there, {rows} are awaited"


def numbers_in(bootstrap: str, topic: str) -> dict[int, list[int]]:
    """The numbers in each partition, in order."""
    with Cluster(config_of(bootstrap)) as cluster:
        view = cluster.topics([topic])[topic]
        return {
            partition: [int(record.value or b"") for record in records_in(cluster, topic, partition)]
            for partition in sorted(view.partitions)
        }


def each_once(bootstrap: str, topic: str, rows: int, lane_rows: int) -> None:
    """Rows 0 … rows - 1 are there, each once, and those of one lane in order in each partition."""
    found = numbers_in(bootstrap, topic)
    assert sorted(number for numbers in found.values() for number in numbers) == list(range(rows))
    for numbers in found.values():
        for of_lane in by_lane(numbers, lane_rows):
            assert of_lane == sorted(of_lane)


def by_lane(numbers: list[int], lane_rows: int) -> Iterator[list[int]]:
    for lane in sorted({number // lane_rows for number in numbers}):
        yield [number for number in numbers if number // lane_rows == lane]
