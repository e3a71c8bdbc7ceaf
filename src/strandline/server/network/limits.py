"""How many connections there may be, and how fast new ones are accepted (KIP-308, KIP-402, KIP-612).

A machine without clock and sockets: it is told what opens and closes, and answers what the acceptor may do.

  - over the number of a listener, or of the node, the acceptor waits for a connection to close
  - the listeners of nodes do not wait for the number of the node: another listener gives one up (`is_over`)
  - over the rate of a listener or of the node, the acceptor waits; the listeners of nodes have only their own rate
  - over the number of an address, a connection is closed at once
  - over the rate of an address, a connection is closed after a pause, so that its client does not come back at once

A rate may be exceeded for `BURST_S` seconds after a rest, as with Kafka's windows (quota.window.num of one second).

Invariant: `total` and `of_listener` are sums over `of_address`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil

from msgspec import field

from strandline.base.value import Value

UNLIMITED = 2147483647  # Kafka's default of every number and rate
BURST_S = 10
PAUSE_MS_MAX = 1000  # of a connection over the rate of its address
ADDRESSES_MAX = 10_000  # whose rates are remembered
SLOWEST = 0.001  # connections a second; Kafka's keys may say 0
PER_IP, RATE_OF_IP = REFUSALS = "per ip", "rate of ip"
NOW, UNTIL_ONE_CLOSES = 0, -1  # beside milliseconds


class LimitsConfig(Value, frozen=True):
    connections_max: int = UNLIMITED
    per_address_max: int = UNLIMITED
    per_address_overrides: dict[str, int] = field(default_factory=dict)
    rate: int = UNLIMITED  # connections a second
    of_listener_max: dict[str, int] = field(default_factory=dict)
    of_listener_rate: dict[str, int] = field(default_factory=dict)
    node_listeners: frozenset[str] = frozenset()  # they are protected: nodes connect to them


class Rate:
    """A token bucket: `per_s` connections a second, and `BURST_S` seconds' worth of them after a rest."""

    __slots__ = ("at", "left", "per_s")

    def __init__(self, per_s: float, now_ms: int) -> None:
        assert per_s > 0
        self.per_s = per_s
        self.left = self.most  # thousandths of connections
        self.at = now_ms

    @property
    def most(self) -> float:
        return max(1000 * self.per_s * BURST_S, 1000)

    def wait_ms(self, now_ms: int) -> int:
        """How long until one more is within the rate; 0: it is."""
        if now_ms > self.at:
            self.left = min(self.left + (now_ms - self.at) * self.per_s, self.most)
            self.at = now_ms
        return 0 if self.left >= 1000 else ceil((1000 - self.left) / self.per_s)

    def take(self) -> None:
        self.left -= 1000


class ConnectionLimits:
    def __init__(self, config: LimitsConfig | None = None) -> None:
        self.config = config or LimitsConfig()
        self.total = 0
        self.of_listener: Counter[str] = Counter()
        self.of_address: Counter[str] = Counter()
        self.rates: dict[str | None, Rate] = {}  # by listener; None: the node's
        # client quotas of the entity type ip: `connection_creation_rate`, for an address and for all others
        self.address_rates: dict[str, float] = {}
        self.address_rate_default: float | None = None
        self.address_buckets: dict[str, Rate] = {}
        self.refused = Counter(dict.fromkeys(REFUSALS, 0))  # connections, by reason

    def configure(self, config: LimitsConfig) -> None:
        """It has changed while connections are open: they stay, also if there are too many now."""
        self.config = config
        self.rates.clear()

    def set_address_rates(self, rates: Mapping[str, float], default: float | None) -> None:
        """Client quotas have changed. `default`: for addresses that are not named; None: without limit."""
        self.address_rates = {plain(address): rate for address, rate in rates.items()}
        self.address_rate_default = default
        self.address_buckets.clear()

    # --- before a connection is accepted

    def wait_ms(self, listener: str, now_ms: int) -> int:
        """When may this listener's acceptor take the next connection: NOW, UNTIL_ONE_CLOSES, or after so many ms."""
        config = self.config
        is_protected = listener in config.node_listeners
        if self.of_listener[listener] >= config.of_listener_max.get(listener, UNLIMITED):
            return UNTIL_ONE_CLOSES
        if self.total >= config.connections_max and not is_protected:
            return UNTIL_ONE_CLOSES
        return max((rate.wait_ms(now_ms) for rate in self.rates_of(listener, now_ms)), default=NOW)

    def rates_of(self, listener: str, now_ms: int) -> Iterable[Rate]:
        config = self.config
        found = [self.rate(listener, config.of_listener_rate.get(listener, UNLIMITED), now_ms)]
        if listener not in config.node_listeners:
            found.append(self.rate(None, config.rate, now_ms))
        return [rate for rate in found if rate is not None]

    def rate(self, whose: str | None, per_s: int, now_ms: int) -> Rate | None:
        if per_s >= UNLIMITED:
            return None
        if whose not in self.rates:
            self.rates[whose] = Rate(max(per_s, SLOWEST), now_ms)
        return self.rates[whose]

    # --- a connection that was accepted

    def why_refused(self, address: str, now_ms: int) -> tuple[str, int] | None:
        """Why this connection is closed, and after how many milliseconds. None: it stays, and `opened` comes next."""
        config = self.config
        most = config.per_address_overrides.get(address, config.per_address_max)
        if self.of_address[address] >= most:
            self.refused[PER_IP] += 1
            return f"it has {most} connections (max.connections.per.ip)", 0
        bucket = self.address_bucket(address, now_ms)
        if bucket is None:
            return None
        pause_ms = bucket.wait_ms(now_ms)
        if pause_ms == 0:
            bucket.take()
            return None
        self.refused[RATE_OF_IP] += 1
        return f"more than {bucket.per_s:g} connections a second (connection_creation_rate)", min(
            pause_ms, PAUSE_MS_MAX
        )

    def address_bucket(self, address: str, now_ms: int) -> Rate | None:
        per_s = self.address_rates.get(address, self.address_rate_default)
        if per_s is None:
            return None
        if address not in self.address_buckets:
            if len(self.address_buckets) >= ADDRESSES_MAX:
                for known in list(self.address_buckets):
                    if self.address_buckets[known].wait_ms(now_ms) == 0:
                        del self.address_buckets[known]
            self.address_buckets[address] = Rate(max(per_s, SLOWEST), now_ms)
        return self.address_buckets[address]

    def opened(self, listener: str, address: str, now_ms: int) -> None:
        for rate in self.rates_of(listener, now_ms):
            rate.take()
        self.total += 1
        self.of_listener[listener] += 1
        self.of_address[address] += 1

    def closed(self, listener: str, address: str) -> None:
        assert self.total > 0 and self.of_listener[listener] > 0 and self.of_address[address] > 0
        self.total -= 1
        self.of_listener[listener] -= 1
        self.of_address[address] -= 1
        if self.of_address[address] == 0:
            del self.of_address[address]

    @property
    def is_over(self) -> bool:
        """Nodes came in over the number: a connection of another listener must go."""
        return self.total > self.config.connections_max

    def check(self) -> None:
        assert self.total == self.of_listener.total() == self.of_address.total()


def plain(address: str) -> str:
    """An address as all parts write it: IPv4 also where it comes over IPv6, and without a zone."""
    address = address.partition("%")[0]
    return address[7:] if address.startswith("::ffff:") and "." in address else address
