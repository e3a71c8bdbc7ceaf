"""Requests counted and timed, per API. A node that serves no metrics has plain connections and pays nothing for this.

A request counts when it is answered, as in Kafka; fetches of followers, the metadata quorum's among them, count apart
from those of consumers. It costs three readings of the clock and some integer additions; nothing is done per record. A
response is looked through for error codes once, down to partitions, topics or groups.
This is on the way of every request: it is written for speed, and measured.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter_ns
from typing import Any, get_args, get_origin, get_type_hints

from strandline.base.effects import Received, Reply
from strandline.base.errors import error_of
from strandline.base.metrics import Family, Histogram
from strandline.base.ports import Buffer
from strandline.broker.metrics import table
from strandline.server.network.net import Connection, Listener, Net
from strandline.wire.api import API_BY_KEY
from strandline.wire.frame import encode_response
from strandline.wire.messages.records.fetch import FetchRequest
from strandline.wire.schema import Group, Message

BOUNDS_US = (50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000)
BOUNDS_NS = tuple(1000 * us for us in (*BOUNDS_US, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000))

FETCH = FetchRequest.api_key
FETCH_CONSUMER, FETCH_FOLLOWER = "FetchConsumer", "FetchFollower"

Codes = Callable[[Any], list[int]]
Paths = list[tuple[str, ...]]


class Requests:
    """The requests of one API."""

    __slots__ = ("errors", "local", "name", "queue", "total", "versions")

    def __init__(self, name: str, versions: Iterable[int]) -> None:
        self.name = name
        self.versions = dict.fromkeys(versions, 0)
        self.errors: Counter[int] = Counter()
        self.queue = Histogram(BOUNDS_NS)
        self.local = Histogram(BOUNDS_NS)
        self.total = Histogram(BOUNDS_NS)


class OfListener:
    """The connections of one listener, those that are closed included."""

    __slots__ = ("bytes_in", "bytes_out", "made")

    def __init__(self) -> None:
        self.made = self.bytes_in = self.bytes_out = 0


class Traffic:
    def __init__(self) -> None:
        self.by_key = {key: Requests(api.name, api.request.versions) for key, api in API_BY_KEY.items()}
        self.by_key[FETCH].name = FETCH_CONSUMER
        # The same, but for Fetch: for connections on which a follower fetches.
        of_followers = Requests(FETCH_FOLLOWER, API_BY_KEY[FETCH].request.versions)
        self.by_key_of_followers = self.by_key | {FETCH: of_followers}
        self.listeners: dict[str, OfListener] = {}

    def connection(self, net: Net, number: int, listener: Listener) -> "MeasuredConnection":
        return MeasuredConnection(net, number, listener, self)

    def families(self, net: Net) -> Iterator[Family]:
        names = [listener.name for listener, _ in net.bound]
        open_now = Counter(connection.listener.name for connection in net.connections.values())
        yield Family(table.CONNECTIONS, [((name,), open_now[name]) for name in names])
        seen = [(name, self.listeners.get(name) or OfListener()) for name in names]
        assert all(of.made >= open_now[name] for name, of in seen), "measured from the first connection on"
        yield Family(table.CONNECTIONS_MADE, [((name,), of.made) for name, of in seen])
        yield Family(table.BYTES_IN, [((name,), of.bytes_in) for name, of in seen])
        yield Family(table.BYTES_OUT, [((name,), of.bytes_out) for name, of in seen])
        every = [*self.by_key.values(), self.by_key_of_followers[FETCH]]
        asked = [requests for requests in every if any(requests.queue.counts)]
        yield Family(
            table.REQUESTS,
            [((r.name, str(version)), count) for r in asked for version, count in r.versions.items() if count],
        )
        yield Family(
            table.ERRORS,
            [((r.name, error_of(code).name), count) for r in asked for code, count in sorted(r.errors.items())],
        )
        yield Family(table.QUEUE_TIME, [((r.name,), r.queue) for r in asked])
        yield Family(table.LOCAL_TIME, [((r.name,), r.local) for r in asked])
        yield Family(table.TOTAL_TIME, [((r.name,), r.total) for r in asked])


class MeasuredConnection(Connection):
    def __init__(self, net: Net, number: int, listener: Listener, traffic: Traffic) -> None:
        super().__init__(net, number, listener)
        self.by_key = traffic.by_key
        self.by_key_of_followers = traffic.by_key_of_followers
        self.of_listener = traffic.listeners.setdefault(listener.name, OfListener())
        self.of_listener.made += 1
        self.read_at = 0  # when bytes last came
        self.pass_on = self.on_event
        self.on_event = self.received  # type: ignore[assignment]  # a method in the place of a function

    def buffer_updated(self, nbytes: int) -> None:
        self.read_at = self.looked_at = perf_counter_ns()
        self.of_listener.bytes_in += nbytes
        Connection.buffer_updated(self, nbytes)

    def received(self, event: Received) -> None:
        # Whoever fetches on a connection is one client, which stays what it is.
        if event.to.api_key == FETCH and self.by_key is not self.by_key_of_followers and is_of_follower(event.message):
            self.by_key = self.by_key_of_followers
        self.pass_on(event)
        begin, end = self.looked_at, perf_counter_ns()
        self.looked_at = end
        requests = self.by_key[event.to.api_key]
        local = requests.local
        local.counts[bisect_left(BOUNDS_NS, end - begin)] += 1
        local.total += end - begin
        if begin == self.read_at:
            requests.queue.counts[0] += 1  # the first of its read, as most are: it waited for nobody
        else:
            requests.queue.observe(begin - self.read_at)

    def reply(self, effect: Reply) -> None:
        to, message = effect.to, effect.message
        requests = self.by_key[to.api_key]
        requests.versions[to.api_version] += 1
        answer: list[Buffer] = []
        if message is not None:
            answer = encode_response(message, to.api_version, to.correlation_id)
            for buffer in answer:
                self.of_listener.bytes_out += len(buffer)
            codes = CODES[type(message)](message)
            if codes:
                requests.errors.update(codes)
        took = perf_counter_ns() - to.stamp
        total = requests.total
        total.counts[bisect_left(BOUNDS_NS, took)] += 1
        total.total += took
        self.fill(to.sequence, answer)


def is_of_follower(request: FetchRequest) -> bool:
    return request.replica_id >= 0 or request.replica_state.replica_id >= 0


# --- error codes


class ByResponse(dict[type, Codes]):
    """Made when a response of the kind is first sent."""

    def __missing__(self, kind: type[Message]) -> Codes:
        made = self[kind] = codes_of(kind)
        return made


CODES = ByResponse()


def codes_of(kind: type[Message]) -> Codes:
    """The function that lists the error codes of such a response, but NONE. For Produce it is

    def codes(p0):
        found = []
        for p1 in p0.responses or ():
            for p2 in p1.partition_responses or ():
                if p2.error_code:
                    found.append(p2.error_code)
        return found
    """
    lines = ["def codes(p0):", "    found = []"]
    for path in paths_of(kind):
        for depth, name in enumerate(path):
            lines.append(f"{'    ' * (depth + 1)}for p{depth + 1} in p{depth}.{name} or ():")
        indent, owner = "    " * (len(path) + 1), f"p{len(path)}"
        lines.append(f"{indent}if {owner}.error_code: found.append({owner}.error_code)")
    assert all(name.isidentifier() for path in paths_of(kind) for name in path), "names of fields alone"
    namespace: dict[str, Codes] = {}
    exec("\n".join([*lines, "    return found"]), {}, namespace)
    return namespace["codes"]


def paths_of(kind: type[Message] | type[Group]) -> Paths:
    """The ways to error codes: the names of the arrays on the way."""
    hints = get_type_hints(kind)
    found: Paths = [()] if "error_code" in hints else []
    for name, hint in hints.items():
        element = element_of(hint)
        if element is not None:
            found += [(name, *rest) for rest in paths_of(element)]
    assert len(set(found)) == len(found), "a code would count twice"
    return found


def element_of(hint: Any) -> type[Group] | None:
    """The class of an array's elements, if they are groups."""
    for option in (hint, *get_args(hint)):  # the array itself, or one that may be null
        if get_origin(option) is tuple:
            element = get_args(option)[0]
            if isinstance(element, type) and issubclass(element, Group):
                return element
    return None
