"""How many connections a second a cluster takes, with their TLS handshakes and their SASL logins.

Each connection is opened, asks for the versions of APIs, and is closed. Threads share this process; the work of TLS and
SCRAM leaves Python's lock, so that a few of them keep a node busy.
"""

import threading
import time
from collections.abc import Sequence

from strandline.base.value import Value
from strandline.bench.load import Latency
from strandline.bench.usage import Usage, usage, used_between
from strandline.client.config import ClientConfig
from strandline.client.connection import Connection
from strandline.client.errors import KafkaError


class Connected(Value, frozen=True):
    count: int
    errors: tuple[str, ...]  # the first of each thread that failed, which ends the thread
    per_second: float
    latency: Latency | None  # of a connection, from the first packet to the answered request
    processes: tuple[Usage, ...]


def measure_connections(config: ClientConfig, seconds: float, threads: int, pids: Sequence[int] = ()) -> Connected:
    """To the first of the cluster's addresses."""
    assert seconds > 0 and threads > 0
    host, port = config.bootstrap[0]
    durations: list[float] = []
    errors: list[str] = []
    until = time.monotonic() + seconds

    def connect() -> None:
        while time.monotonic() < until:
            started = time.perf_counter()
            try:
                Connection(host, port, config).close()
            except KafkaError as error:
                errors.append(error.problem)
                return
            durations.append(time.perf_counter() - started)

    before = [usage(pid) for pid in pids]
    began = time.monotonic()
    workers = [threading.Thread(target=connect) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    span = time.monotonic() - began
    used = tuple(used_between(old, usage(old.pid)) for old in before)
    return Connected(len(durations), tuple(errors), len(durations) / span, Latency.of(durations), used)
