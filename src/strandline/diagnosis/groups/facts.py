"""What is known of a group whose progress is in question, and words for it."""

from collections.abc import Iterable, Mapping

from strandline.base.value import Value
from strandline.client.admin.groups.described import Described, Member
from strandline.client.admin.groups.offsets import Position
from strandline.client.admin.open_transactions import Held
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.brokers import BrokerAt

WATCHED_S = 6  # how long a group's offsets are watched: consumers commit every 5 s (auto.commit.interval.ms)
SHOWN_MAX = 5  # partitions or members that a sentence names


class GroupFacts(Value, frozen=True):
    """`keeper`: the partition of __consumer_offsets that keeps the group; None: there is no such topic. `before`: the
    positions WATCHED_S earlier; empty if they were not watched. `states`: of the partitions of all topics that the
    group reads, or is subscribed to; `unknown`: topics of these that do not exist."""

    group_id: str
    answer: Described
    coordinator: int = -1
    keeper: PartitionState | None = None
    brokers: Mapping[int, BrokerAt] = {}
    positions: tuple[Position, ...] = ()
    before: tuple[Position, ...] = ()
    states: Mapping[Place, PartitionState] = {}
    unknown: tuple[str, ...] = ()
    held: Mapping[Place, Held] = {}
    options: str = ""  # that every command needs to reach this cluster

    @property
    def lag(self) -> int:
        return sum(position.lag or 0 for position in self.positions)

    @property
    def is_watched(self) -> bool:
        return bool(self.before)

    def moved(self) -> set[Place]:
        """Where the group has committed while it was watched."""
        earlier = {position.at: position.committed for position in self.before}
        return {at for at, committed in self.committed() if at in earlier and committed != earlier[at]}

    def committed(self) -> list[tuple[Place, object]]:
        return [(position.at, position.committed) for position in self.positions]


# --- words


def span(ms: int) -> str:
    """ "0.4 s", "12 s", "5 min", "3 h"."""
    if ms < 1000:
        return f"{max(ms, 0) / 1000:.1f} s"
    for unit, size, limit in (("s", 1000, 120_000), ("min", 60_000, 7_200_000), ("h", 3_600_000, 172_800_000)):
        if ms < limit:
            return f"{ms // size} {unit}"
    return f"{ms // 86_400_000} days"


def poll_interval(ms: int) -> str:
    """Clients send it as their rebalance timeout. Negative: it is not known."""
    return f"max.poll.interval.ms ({span(ms)})" if ms >= 0 else "max.poll.interval.ms"


def places(found: Iterable[Place]) -> str:
    return listed([str(at) for at in sorted(found)])


def named(members: Iterable[Member]) -> str:
    return listed([member.named for member in members], "; ")


def listed(texts: list[str], between: str = ", ") -> str:
    more = len(texts) - SHOWN_MAX
    return between.join(texts[:SHOWN_MAX]) + (f"{between}and {more} more" if more > 0 else "")


def count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
