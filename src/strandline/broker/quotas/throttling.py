"""Client quotas (KIP-13, 124, 219, 599): what each client uses, and for how long it must wait.

A request that uses more than its quota is served, and answered at once: the answer says how long the client must wait,
and nothing more is read from its connection meanwhile. Only what a strict quota for mutations does not allow is
refused. Nodes are never throttled. Use is counted by this broker for itself, as in Kafka; that of mutations too, since
brokers judge what they pass on to the controller.

Produced bytes are counted when a request comes, fetched bytes when its answer goes. A Fetch is cut to what the quota
allows in all of its windows, so that no answer is throttled for longer than that. The time of a request is that in
which it and its consequences are handled, without reading and writing its bytes; one wait for it is one window at most.

Invariants (executed by `check`):
  - a request waits for its answer here once, and while its connection is open;
  - without a quota nothing is counted.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from strandline.base.effects import Effect, Received, Reply, ReplyTo, Throttle
from strandline.base.time import Instant, after
from strandline.base.value import Value
from strandline.broker.quotas.limits import Limits, Quota
from strandline.broker.quotas.mutations import Mutations, mutations_of, with_refused, with_rows
from strandline.broker.quotas.rates import Rate, TokenBucket
from strandline.metadata.image import Image
from strandline.metadata.security.quotas import (
    CLIENT_KEYS,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from strandline.wire.messages.records.fetch import FetchRequest, FetchResponse
from strandline.wire.messages.records.produce import ProduceRequest
from strandline.wire.messages.topics.create_topics import CreateTopicsRequest

BYTE_RATES: dict[type, str] = {ProduceRequest: PRODUCER_BYTE_RATE, FetchRequest: CONSUMER_BYTE_RATE}
PERCENT_PER_NS = 100 / 1e9
RATES_MAX = 20_000  # that are kept apart, of a client that may invent as many client ids as it likes
OTHER_CLIENTS = "\0"  # those that came when so many were there: each user's share one rate


class QuotaConfig(Value, frozen=True):
    window_count: int = 11  # quota.window.num
    window_ms: int = 1000  # quota.window.size.seconds
    mutation_window_count: int = 11  # controller.quota.window.num
    mutation_window_ms: int = 1000  # controller.quota.window.size.seconds
    default_partitions: int = 1  # num.partitions

    def __post_init__(self) -> None:
        assert self.window_count > 0 and self.window_ms > 0
        assert self.mutation_window_count > 0 and self.mutation_window_ms > 0
        assert self.default_partitions > 0


class Pending(Struct):
    """A request that has no answer yet."""

    user: str
    client_id: str
    request: type
    wait_ms: int = 0  # for mutations
    refused: tuple[Any, ...] = ()  # topics


class ClientQuotas:
    def __init__(self, config: QuotaConfig, stopwatch: Callable[[], int]) -> None:
        """`stopwatch`: nanoseconds, from any beginning."""
        self.config = config
        self.stopwatch = stopwatch
        self.limits = Limits({})
        self.seen: tuple[Any, int] = (None, -1)  # the image's quotas and their version
        self.rates: dict[tuple[str, str, str], Rate] = {}  # by kind, user and client id
        self.buckets: dict[tuple[str, str], TokenBucket] = {}  # of mutations
        self.next_purge = Instant(0)
        self.pending: dict[int, dict[int, Pending]] = {}  # by connection and sequence
        self.current: Pending | None = None  # whose time runs
        self.began_ns = 0
        # By the quota that a client waits longest for: answers, and the sum of waits in ms, since the start.
        self.throttled: dict[str, tuple[int, int]] = dict.fromkeys(CLIENT_KEYS, (0, 0))

    @property
    def is_needed(self) -> bool:
        """Are there quotas, or requests that came when there were?"""
        return bool(self.limits) or bool(self.pending)

    def follow(self, image: Image) -> None:
        """Take over the image's quotas."""
        quotas, version = image.quotas, image.quotas_version
        if self.seen[0] is not quotas or self.seen[1] != version:
            self.seen = (quotas, version)
            self.limits = Limits(quotas)

    # --- a request

    def take(self, event: Received, now: Instant) -> Received:
        """The request as it goes on: a Fetch may be for less."""
        caller = event.caller
        if caller.is_node:
            return event
        self.purge(now)
        pending = Pending(caller.principal.partition(":")[2], caller.client_id, type(event.message))
        requests = self.pending.setdefault(event.to.connection, {})
        assert event.to.sequence not in requests
        requests[event.to.sequence] = pending
        self.go_on(event.to, now)
        match event.message:
            case ProduceRequest():
                self.count(PRODUCER_BYTE_RATE, pending, produced_bytes(event.message), now)
                return event
            case FetchRequest():
                return self.cut(event, pending)
            case _:
                return event

    def cut(self, event: Received, pending: Pending) -> Received:
        """A Fetch for no more than the quota allows in all windows."""
        quota = self.limits.quota(CONSUMER_BYTE_RATE, pending.user, pending.client_id)
        if quota is None:
            return event
        seconds = max(1, self.config.window_count - 1) * self.config.window_ms / 1000
        most = max(1, int(min(quota.limit * seconds, 2**31 - 1)))
        request: FetchRequest = event.message
        if most >= request.max_bytes:
            return event
        return replace(event, message=replace(request, max_bytes=most, min_bytes=min(request.min_bytes, most)))

    def allow(self, event: Received, image: Image, now: Instant) -> Received | list[Effect]:
        """The request as it goes on, or the answer to one of which nothing is left."""
        pending = self.pending.get(event.to.connection, {}).get(event.to.sequence)
        if pending is None or CONTROLLER_MUTATION_RATE not in self.limits.by_kind:
            return event
        wanted = mutations_of(event.message, event.to.api_version, image, self.config.default_partitions)
        quota = self.limits.quota(CONTROLLER_MUTATION_RATE, pending.user, pending.client_id)
        if wanted is None or quota is None:
            return event
        allowed, refused, pending.wait_ms = self.divided(wanted, quota, now)
        if not refused:
            return event
        pending.refused = tuple(refused)
        if not allowed:
            return [Reply(event.to, with_refused(pending.request, None, ()))]
        return replace(event, message=with_rows(event.message, tuple(allowed)))

    def divided(self, wanted: Mutations, quota: Quota, now: Instant) -> tuple[list[Any], list[Any], int]:
        """What the quota allows of it, which is used up by that; what it does not; and how long to wait, in ms."""
        bucket = self.bucket(quota)
        allowed: list[Any] = []
        refused: list[Any] = []
        longest_ms = 0
        for row, cost in zip(wanted.rows, wanted.costs, strict=True):
            wait_ms = bucket.throttle_ms(quota.limit, now) if cost and wanted.is_strict else 0
            if wait_ms:
                longest_ms = max(longest_ms, wait_ms)
                refused.append(row)
                continue
            allowed.append(row)
            if cost:
                bucket.record(cost, quota.limit, now)
        assert len(allowed) + len(refused) == len(wanted.rows), "each topic is allowed or refused"
        assert bool(refused) == (longest_ms > 0), "who is refused must wait"
        return allowed, refused, longest_ms if wanted.is_strict else bucket.throttle_ms(quota.limit, now)

    def creatable(
        self, asked: Received, request: CreateTopicsRequest, image: Image, now: Instant
    ) -> CreateTopicsRequest:
        """What the quota allows of the topics that are created since `asked` names them. Its answer does not wait: it
        says that the others do not exist."""
        pending = self.pending.get(asked.to.connection, {}).get(asked.to.sequence)
        if pending is None or CONTROLLER_MUTATION_RATE not in self.limits.by_kind:
            return request
        wanted = mutations_of(request, request.versions[-1], image, self.config.default_partitions)
        quota = self.limits.quota(CONTROLLER_MUTATION_RATE, pending.user, pending.client_id)
        if wanted is None or quota is None:
            return request
        allowed, _, _ = self.divided(wanted, quota, now)
        return replace(request, topics=tuple(allowed))

    # --- its answer

    def throttle(self, effects: list[Effect], now: Instant) -> list[Effect]:
        """The `effects` of a step, with waits where a quota is used up."""
        self.stop_the_clock(now)
        if not self.pending:
            return effects
        done: list[Effect] = []
        for effect in effects:
            if type(effect) is Reply:
                done += self.throttle_reply(effect, now)
            else:
                done.append(effect)
        return done

    def throttle_reply(self, reply: Reply, now: Instant) -> list[Effect]:
        requests = self.pending.get(reply.to.connection, {})
        pending = requests.pop(reply.to.sequence, None)
        if pending is None:
            return [reply]
        if not requests:
            del self.pending[reply.to.connection]
        message = reply.message
        if pending.refused:
            message = with_refused(pending.request, message, pending.refused)
        if isinstance(message, FetchResponse):
            self.count(CONSUMER_BYTE_RATE, pending, fetched_bytes(message), now)
        wait_ms, kind = max(self.waits(pending, now))
        if wait_ms == 0:
            return [reply if message is reply.message else Reply(reply.to, message)]
        count, sum_ms = self.throttled[kind]
        self.throttled[kind] = (count + 1, sum_ms + wait_ms)
        if message is not None and "throttle_time_ms" in message.__struct_fields__:
            message = replace(message, throttle_time_ms=max(wait_ms, message.throttle_time_ms))
        return [Reply(reply.to, message), Throttle(reply.to.connection, wait_ms)]

    def waits(self, pending: Pending, now: Instant) -> list[tuple[int, str]]:
        """In milliseconds, for each quota that the request used."""
        time_ms = min(self.wait_ms(REQUEST_PERCENTAGE, pending, now), self.config.window_ms)
        found = [(pending.wait_ms, CONTROLLER_MUTATION_RATE), (time_ms, REQUEST_PERCENTAGE)]
        kind = BYTE_RATES.get(pending.request)
        return found if kind is None else [*found, (self.wait_ms(kind, pending, now), kind)]

    def wait_ms(self, kind: str, pending: Pending, now: Instant) -> int:
        quota = self.limits.quota(kind, pending.user, pending.client_id)
        rate = None if quota is None else self.rates.get(self.place(kind, quota))
        return 0 if quota is None or rate is None else rate.throttle_ms(quota.limit, now)

    # --- what is used

    def count(self, kind: str, pending: Pending, amount: float, now: Instant) -> None:
        quota = self.limits.quota(kind, pending.user, pending.client_id)
        if quota is None or amount == 0:
            return
        at = self.place(kind, quota)
        if at not in self.rates:
            self.rates[at] = Rate(self.config.window_count, self.config.window_ms)
        self.rates[at].record(amount, now)

    def place(self, kind: str, quota: Quota) -> tuple[str, str, str]:
        """Which rate counts what is used of the quota."""
        at = (kind, quota.user, quota.client_id)
        if len(self.rates) < RATES_MAX or at in self.rates or not quota.client_id:
            return at
        return (kind, quota.user, OTHER_CLIENTS)

    def bucket(self, quota: Quota) -> TokenBucket:
        at = (quota.user, quota.client_id)
        if at not in self.buckets:
            self.buckets[at] = TokenBucket(self.config.mutation_window_count, self.config.mutation_window_ms)
        return self.buckets[at]

    def go_on(self, to: ReplyTo, now: Instant) -> None:
        """From now on, what is handled is this request's."""
        self.stop_the_clock(now)
        if REQUEST_PERCENTAGE in self.limits.by_kind:
            self.current = self.pending.get(to.connection, {}).get(to.sequence)
            self.began_ns = self.stopwatch()

    def stop_the_clock(self, now: Instant) -> None:
        """What was handled since the last request is its own, with its consequences."""
        if self.current is not None:
            spent, pending = max(0, self.stopwatch() - self.began_ns), self.current
            self.current = None
            self.count(REQUEST_PERCENTAGE, pending, spent * PERCENT_PER_NS, now)

    def purge(self, now: Instant) -> None:
        """Clients choose their ids: what is as good as new is not kept."""
        if now < self.next_purge:
            return
        self.next_purge = after(now, self.config.window_count * self.config.window_ms)
        assert self.next_purge > now
        self.rates = {at: rate for at, rate in self.rates.items() if not rate.is_idle(now)}
        self.buckets = {at: bucket for at, bucket in self.buckets.items() if not bucket.is_idle(now)}

    def forget(self, connection: int) -> None:
        """It is closed."""
        self.pending.pop(connection, None)

    def check(self) -> None:
        assert all(self.pending.values()), "a connection without requests is not there"
        assert self.current is None, "no time runs between steps"


def produced_bytes(request: ProduceRequest) -> int:
    return sum(size_of(row.records) for topic in request.topic_data for row in topic.partition_data)


def fetched_bytes(response: FetchResponse) -> int:
    return sum(size_of(row.records) for topic in response.responses for row in topic.partitions)


def size_of(records: Any) -> int:
    """Of a buffer, or of several."""
    if records is None:
        return 0
    return sum(map(len, records)) if isinstance(records, tuple) else len(records)
