"""What the demonstrations have in common: a folder of their own, and a producer that keeps its rate."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer

from strandline.client.errors import StrandlineError
from strandline.client.librdkafka import client_config


def folder_for(chosen: Path | None, prefix: str) -> Path:
    """The chosen folder, which must be new or empty, or a temporary one."""
    if chosen is None:
        return Path(tempfile.mkdtemp(prefix=prefix))
    if chosen.exists() and (not chosen.is_dir() or any(chosen.iterdir())):
        raise StrandlineError(
            f"{chosen} is not an empty folder", "the demonstration needs a new one; without --dir it makes its own"
        )
    return chosen


def kept(folder: Path) -> str:
    return f"files kept for inspection in {folder}"


def safe_producer(bootstrap: str) -> Producer:
    return Producer(client_config(bootstrap, acks="all", **{"enable.idempotence": True, "linger.ms": 5}))


def keep_rate(producer: Producer, rate: int, until: float, send: Callable[[], None]) -> None:
    """Call `send` that many times a second until this instant of the monotonic clock, whatever the cluster does. When
    the producer's queue is full (BufferError), what is late waits."""
    started, sent = time.monotonic(), 0
    while (now := time.monotonic()) < until:
        due = int((now - started) * rate)
        while sent < due:
            try:
                send()
            except BufferError:
                break
            sent += 1
        producer.poll(0.002)
