"""Replication quotas (KIP-73): how many bytes a second the throttled replicas of this broker may send, or take.

A broker has two: one for what it sends as a leader, one for what it takes as a follower. A replica is throttled if its
topic's `….replication.throttled.replicas` names it. All traffic of throttled replicas counts; but only those that are
out of sync are held back while the rate is exceeded, so that a quota drives no replica out of an ISR.

The rate is measured as Kafka measures it: from the beginning of the oldest window that is still kept, and over the
length of one window at least.
"""

from collections import deque
from collections.abc import Iterable

from strandline.base.ids import NodeId
from strandline.base.time import Instant
from strandline.metadata.configs.dynamic_configs import dynamic_value
from strandline.metadata.image import TOPIC_RESOURCE, Image
from strandline.replica.config import ReplicaConfig

EVERYTHING = "*"


class Window:
    """`last` is when something was last counted in it: a window is kept as long as that is recent."""

    __slots__ = ("began", "last", "size")

    def __init__(self, began: Instant) -> None:
        self.began = began
        self.last = began
        self.size = 0


class Rate:
    """Bytes per second. At most `count` + 1 windows are kept."""

    def __init__(self, count: int, window_ms: int) -> None:
        assert count > 0
        assert window_ms > 0
        self.span_ms = count * window_ms
        self.window_ms = window_ms
        self.windows: deque[Window] = deque(maxlen=count + 1)
        self.size = 0
        self.total = 0  # since the start

    def record(self, size: int, now: Instant) -> None:
        assert size >= 0
        self.purge(now)
        windows = self.windows
        if not windows or now - windows[-1].began >= self.window_ms:
            if len(windows) == windows.maxlen:
                self.size -= windows.popleft().size
            windows.append(Window(now))
        windows[-1].size += size
        windows[-1].last = now
        self.size += size
        self.total += size

    def purge(self, now: Instant) -> None:
        while self.windows and now - self.windows[0].last >= self.span_ms:
            self.size -= self.windows.popleft().size
        assert self.size >= 0

    def measure(self, now: Instant) -> float:
        self.purge(now)
        if not self.windows:
            return 0.0
        assert self.windows[0].began <= now
        return 1000 * self.size / max(now - self.windows[0].began, self.window_ms)


def rate_of(image: Image, me: NodeId, key: str, static: int) -> int:
    """The bytes per second that one running broker was given, or all were; else what its file says."""
    rate = dynamic_value(image.configs, str(me), key)
    assert rate is None or isinstance(rate, int)
    return static if rate is None else rate


class Quota:
    """One of a broker's two; `side` is "leader" or "follower", as in the keys."""

    def __init__(self, me: NodeId, side: str, bytes_per_second: int, rate: Rate) -> None:
        assert side in ("leader", "follower")
        self.me = me
        assert bytes_per_second >= 0
        self.rate_key = f"{side}.replication.throttled.rate"
        self.replicas_key = f"{side}.replication.throttled.replicas"
        self.static = bytes_per_second
        self.bound = bytes_per_second
        self.rate = rate
        # By topic: this broker's throttled replicas, None: all of them. Empty as a rule, which the hot path asks first.
        self.throttled: dict[str, frozenset[int] | None] = {}

    def configure(self, image: Image, resources: Iterable[tuple[int, str]], anew: bool = False) -> None:
        """Some resources' configuration has changed; `anew`: all may have, and these are all that there are."""
        if anew:
            self.throttled = {}
        for kind, name in resources:
            if kind == TOPIC_RESOURCE:
                self.configure_topic(name, image.configs.get((kind, name), {}).get(self.replicas_key, ""))
        self.bound = rate_of(image, self.me, self.rate_key, self.static)

    def configure_topic(self, topic: str, value: str) -> None:
        if value.replace(",", "").strip() == EVERYTHING:
            self.throttled[topic] = None
            return
        mine = [int(row[0]) for entry in value.split(",") if (row := entry.split(":"))[-1].strip() == str(self.me)]
        if mine:
            self.throttled[topic] = frozenset(mine)
        else:
            self.throttled.pop(topic, None)

    def is_throttled(self, topic: str, partition: int) -> bool:
        if topic not in self.throttled:
            return False
        partitions = self.throttled[topic]
        return partitions is None or partition in partitions

    def record(self, size: int, now: Instant) -> None:
        """Also where the quota is exceeded, and of replicas in sync."""
        self.rate.record(size, now)

    def is_exceeded(self, now: Instant) -> bool:
        return self.rate.measure(now) > self.bound


def quota_of(me: NodeId, side: str, config: ReplicaConfig) -> Quota:
    rate = config.leader_throttled_rate if side == "leader" else config.follower_throttled_rate
    return Quota(me, side, rate, Rate(config.quota_windows, config.quota_window_ms))
