"""What clients have pushed last, as series for Prometheus: one for each metric, client and set of labels (KIP-714).

Clients push what grew since their last push. Prometheus wants sums, so they are summed here; a sum begins with the
first push that this broker gets. A series whose client is silent for a few push intervals is dropped.

Clients choose names and labels. So names have a prefix of their own and nothing but letters, digits and underscores;
there are at most `OF_CLIENT_MAX` series of a client and `SERIES_MAX` in all, and texts have a longest length.

Invariants (executed by `check`):
  - the numbers of series are within their bounds, and `count` is their sum;
  - the name says whether it is a counter, so that one name never has two types.
"""

import math
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from strandline.base.ids import Uuid, uuid_text
from strandline.base.time import NEVER, Instant

PREFIX = "strandline_pushed_"
COUNTER_END = "_total"
OF_CLIENT_MAX = 2_000
SERIES_MAX = 50_000
NAME_MAX = 150  # letters of a metric's name; longer ones are dropped
LABELS_MAX = 10
LABEL_NAME_MAX = 60  # letters; what is longer is cut
LABEL_MAX = 120
SILENT_MS = 60_000
OTHER = re.compile(r"[^a-zA-Z0-9_]")

Labels = tuple[tuple[str, str], ...]


class Point(NamedTuple):
    """One number of a client's, as it was pushed."""

    name: str
    labels: Labels
    value: float
    is_counter: bool  # it only grows
    is_delta: bool  # since the last push


class Pushing(Struct):
    """One client's series."""

    labels: Labels
    silent_at: Instant
    series: dict[tuple[str, Labels], None]


class PushedSeries:
    def __init__(self) -> None:
        self.by_name: dict[str, dict[tuple[Uuid, Labels], float]] = {}
        self.clients: dict[Uuid, Pushing] = {}
        self.count = 0
        self.dropped = 0  # points, since the start, that had no room or no valid name or number

    def take(self, instance_id: Uuid, client_id: str, points: Iterable[Point], silent_at: Instant) -> None:
        """`silent_at`: when they are dropped if the client pushes nothing more."""
        client = self.clients.get(instance_id)
        if client is None:
            labels = (("client_id", client_id[:LABEL_MAX]), ("client_instance_id", uuid_text(instance_id)))
            client = self.clients[instance_id] = Pushing(labels, silent_at, {})
        client.silent_at = silent_at
        for point in points:
            self.put(instance_id, client, point)
        if not client.series:
            del self.clients[instance_id]

    def put(self, instance_id: Uuid, client: Pushing, point: Point) -> None:
        name = name_of(point)
        if len(name) > NAME_MAX or (point.is_delta and not is_growth(point)):
            self.dropped += 1
            return
        labels = labels_of(point.labels)
        at = (name, labels)
        if at not in client.series:
            if len(client.series) >= OF_CLIENT_MAX or self.count >= SERIES_MAX:
                self.dropped += 1
                return
            client.series[at] = None
            self.by_name.setdefault(name, {})[instance_id, labels] = point.value
            self.count += 1
            assert self.count <= SERIES_MAX and len(client.series) <= OF_CLIENT_MAX
            return
        family = self.by_name[name]
        family[instance_id, labels] = point.value + (family[instance_id, labels] if point.is_delta else 0)

    def forget(self, instance_id: Uuid) -> None:
        client = self.clients.pop(instance_id)
        for name, labels in client.series:
            family = self.by_name[name]
            del family[instance_id, labels]
            if not family:
                del self.by_name[name]
        self.count -= len(client.series)
        assert self.count >= 0

    def forget_silent(self, now: Instant) -> None:
        for instance_id, client in list(self.clients.items()):
            if client.silent_at <= now:
                self.forget(instance_id)

    def next_silent(self) -> Instant:
        return min((client.silent_at for client in self.clients.values()), default=NEVER)

    def families(self) -> Iterator[tuple[str, list[tuple[tuple[Uuid, Labels], float]]]]:
        """By name: its samples. What changes between two of them does no harm."""
        for name in sorted(self.by_name):
            samples = list(self.by_name.get(name, {}).items())
            if samples:
                yield name, samples

    def check(self) -> None:
        assert self.count == sum(map(len, self.by_name.values())) <= SERIES_MAX
        assert self.count == sum(len(client.series) for client in self.clients.values())
        assert all(0 < len(client.series) <= OF_CLIENT_MAX for client in self.clients.values())
        assert all(self.by_name.values()), "a name without series is not there"


def is_growth(point: Point) -> bool:
    """Can it be added to a sum without spoiling it?"""
    return math.isfinite(point.value) and not (point.is_counter and point.value < 0)


def name_of(point: Point) -> str:
    """org.apache.kafka.producer.record.send.total → strandline_pushed_org_apache_kafka_producer_record_send_total.

    Counters and no others end in _total, so one name has one type, whatever clients say."""
    name = PREFIX + plain(point.name[: NAME_MAX + 1])
    if point.is_counter:
        return name if name.endswith(COUNTER_END) else name + COUNTER_END
    return name + "_value" if name.endswith(COUNTER_END) else name


@lru_cache(1000)  # clients push the same names again and again
def plain(text: str) -> str:
    return OTHER.sub("_", text)


@lru_cache(1000)
def label_name(text: str) -> str:
    """Empty if it is not a client's to give."""
    name = plain(text).lstrip("_")  # two underscores at the front are Prometheus' own
    if name in ("client_id", "client_instance_id"):
        return ""
    return f"label_{name}" if name[:1].isdigit() else name


def labels_of(labels: Labels) -> Labels:
    """With names that Prometheus accepts; the first of a name counts. A client cannot give itself another id."""
    found: dict[str, str] = {}
    for key, text in labels[:LABELS_MAX]:
        name = label_name(key[:LABEL_NAME_MAX])
        if name and text:
            found.setdefault(name, text[:LABEL_MAX])
    assert len(found) <= LABELS_MAX
    return tuple(sorted(found.items()))
