"""Requests counted and timed, per API. A node that serves no metrics has plain connections and pays nothing for this.

A request costs three readings of the clock and some integer additions; nothing is done per record. A response is looked
through for error codes once, down to partitions, topics or groups.

Invariant: a measured connection remembers one beginning for every slot that its base class has.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from struct import Struct
from time import perf_counter_ns
from typing import Any, get_args, get_origin, get_type_hints

from strandline.base.effects import Reply
from strandline.base.errors import error_of
from strandline.base.metrics import Family, Histogram, SumAndCount
from strandline.base.ports import Buffer
from strandline.broker import metric_table as table
from strandline.server.net import Connection, Listener, Net
from strandline.wire.api import API_BY_KEY
from strandline.wire.schema import Group, Message

MS = 1_000_000
BOUNDS_NS = tuple(
    int(ms * MS)
    for ms in (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000)
)
API_AND_VERSION = Struct(">hh")

Codes = Callable[[Any], list[int]]


class Requests:
    """The requests of one API."""

    __slots__ = ("errors", "local", "name", "queue", "request_bytes", "response_bytes", "total", "versions")

    def __init__(self, name: str, versions: Iterable[int]) -> None:
        self.name = name
        self.versions = dict.fromkeys(versions, 0)  # no others: a client must not make the page grow
        self.errors: Counter[int] = Counter()
        self.request_bytes = 0
        self.response_bytes = 0
        self.queue = Histogram(BOUNDS_NS)
        self.local = Histogram(BOUNDS_NS)
        self.total = Histogram(BOUNDS_NS)


class Traffic:
    def __init__(self) -> None:
        self.by_key = {key: Requests(api.name, api.request.versions) for key, api in API_BY_KEY.items()}
        self.unknown = Requests("unknown", ())  # never shown: their connections are closed, or they are asked again
        self.made: Counter[str] = Counter()  # connections, by listener

    def connection(self, net: Net, number: int, listener: Listener) -> "MeasuredConnection":
        return MeasuredConnection(net, number, listener, self)

    def families(self, net: Net) -> Iterator[Family]:
        open_now = Counter(connection.listener.name for connection in net.connections.values())
        listeners = [listener.name for listener, _ in net.bound]
        yield Family(table.CONNECTIONS, [((name,), open_now[name]) for name in listeners])
        yield Family(table.CONNECTIONS_MADE, [((name,), self.made[name]) for name in listeners])
        seen = [(r, count) for r in self.by_key.values() if (count := sum(r.versions.values()))]
        yield Family(
            table.REQUESTS,
            [((r.name, str(version)), count) for r, _ in seen for version, count in r.versions.items() if count],
        )
        yield Family(
            table.ERRORS,
            [((r.name, error_of(code).name), count) for r, _ in seen for code, count in sorted(r.errors.items())],
        )
        yield Family(table.REQUEST_BYTES, [((r.name,), SumAndCount(r.request_bytes, count)) for r, count in seen])
        yield Family(table.RESPONSE_BYTES, [((r.name,), SumAndCount(r.response_bytes, r.total.count)) for r, _ in seen])
        yield Family(table.QUEUE_TIME, [((r.name,), r.queue) for r, _ in seen])
        yield Family(table.LOCAL_TIME, [((r.name,), r.local) for r, _ in seen])
        yield Family(table.TOTAL_TIME, [((r.name,), r.total) for r, _ in seen])


class MeasuredConnection(Connection):
    def __init__(self, net: Net, number: int, listener: Listener, traffic: Traffic) -> None:
        super().__init__(net, number, listener)
        self.traffic = traffic
        self.read_at = 0
        self.begun: deque[tuple[int, Requests]] = deque()
        traffic.made[listener.name] += 1

    def buffer_updated(self, nbytes: int) -> None:
        self.read_at = perf_counter_ns()
        super().buffer_updated(nbytes)

    def frame_received(self, frame: memoryview) -> None:
        begin = perf_counter_ns()
        size = len(frame)
        requests = self.traffic.unknown
        if size >= API_AND_VERSION.size:
            key, version = API_AND_VERSION.unpack_from(frame)
            known = self.traffic.by_key.get(key)
            if known is not None and version in known.versions:
                requests = known
                requests.versions[version] += 1
        requests.request_bytes += size
        requests.queue.observe(begin - self.read_at)
        self.begun.append((begin, requests))
        super().frame_received(frame)
        requests.local.observe(perf_counter_ns() - begin)

    def reply(self, effect: Reply) -> None:
        if effect.message is not None:
            kind: type[Message] = type(effect.message)
            codes = codes_of(kind)(effect.message)
            if codes:
                self.begun[effect.to.sequence - self.first][1].errors.update(codes)
        super().reply(effect)

    def fill(self, sequence: int, answer: Sequence[Buffer]) -> None:
        begin, requests = self.begun[sequence - self.first]
        requests.total.observe(perf_counter_ns() - begin)
        requests.response_bytes += sum(map(len, answer))
        super().fill(sequence, answer)
        while len(self.begun) > len(self.slots):
            self.begun.popleft()


@cache
def codes_of(kind: type[Message] | type[Group]) -> Codes:
    """The function that lists the error codes of such a response, but NONE; one walk, along the fields that lead to
    codes and no others."""
    hints = get_type_hints(kind)
    has_own = "error_code" in hints
    inner = [
        (name, codes_of(element))
        for name, hint in hints.items()
        if (element := element_of(hint)) is not None and leads_to_codes(element)
    ]

    def codes(message: Any) -> list[int]:
        found = [message.error_code] if has_own and message.error_code else []
        for name, inside in inner:
            for part in getattr(message, name) or ():
                found += inside(part)
        return found

    return codes


def element_of(hint: Any) -> type[Group] | None:
    """The class of an array's elements, if they are groups."""
    for option in (hint, *get_args(hint)):  # the array itself, or one that may be null
        if get_origin(option) is tuple:
            element = get_args(option)[0]
            if isinstance(element, type) and issubclass(element, Group):
                return element
    return None


@cache
def leads_to_codes(kind: type[Group]) -> bool:
    hints = get_type_hints(kind)
    return "error_code" in hints or any(
        leads_to_codes(element) for hint in hints.values() if (element := element_of(hint)) is not None
    )
