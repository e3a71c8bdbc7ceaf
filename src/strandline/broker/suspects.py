"""Leaders that have perhaps just died: their connection to us broke, and metadata still names them.

A client whose leader is killed asks for metadata within milliseconds, sooner than anybody can know the next leader, and
perhaps sooner than this node has read that its own connection to that leader is closed. Told of the dead leader, the
client asks again only a second or two later. So every question about topics is looked at `GLANCE_MS` after it came, and
an answer that would then name a suspect waits for the metadata to move. Who asks for the brokers alone is answered at
once (`route.py`).

Invariants:
  - an answer waits at most `GLANCE_MS + HOLD_MS`; a leader that is merely slow delays nobody for longer;
  - a leader is waited for once per loss; one that is heard again is no suspect.
"""

from collections import deque
from collections.abc import Iterable
from itertools import pairwise

from strandline.base.effects import Received
from strandline.base.ids import NodeId
from strandline.base.time import NEVER, Instant, after

GLANCE_MS = 3
HOLD_MS = 500
HELD_MAX = 1000


class Suspects:
    def __init__(self) -> None:
        self.until: dict[NodeId, Instant] = {}  # kept when past: a leader is waited for once
        self.fresh: deque[tuple[Instant, Received]] = deque()  # not looked at yet, and from when they may be
        self.held: list[tuple[Instant, Received]] = []  # looked at, and how long they wait at most

    def lost(self, leader: NodeId, now: Instant) -> None:
        self.until.setdefault(leader, after(now, HOLD_MS))
        assert self.until[leader] <= after(now, HOLD_MS), "a leader is waited for once"

    def heard(self, leader: NodeId) -> None:
        self.until.pop(leader, None)

    def take_in(self, received: Received, now: Instant) -> None:
        assert not self.fresh or self.fresh[-1][0] <= after(now, GLANCE_MS), "in the order of their times"
        self.fresh.append((after(now, GLANCE_MS), received))

    def hold(self, received: Received, leaders: Iterable[int], now: Instant) -> bool:
        """Should this request wait, since its answer would name these leaders? If so it is kept."""
        end = max((self.until.get(NodeId(leader), now) for leader in leaders), default=now)
        if end <= now or len(self.held) >= HELD_MAX:
            return False
        self.held.append((end, received))
        assert end <= after(now, HOLD_MS)
        assert len(self.held) <= HELD_MAX
        return True

    def due(self, now: Instant, *, moved: bool) -> list[Received]:
        """The requests to look at now; if metadata has `moved`, also those that waited for it."""
        found = []
        while self.fresh and self.fresh[0][0] <= now:
            found.append(self.fresh.popleft()[1])
        found += [received for end, received in self.held if moved or end <= now]
        self.held = [] if moved else [(end, received) for end, received in self.held if end > now]
        assert self.deadline() > now
        return found

    def check(self) -> None:
        assert all(before[0] <= after[0] for before, after in pairwise(self.fresh)), "in the order of their times"
        assert len(self.held) <= HELD_MAX

    def deadline(self) -> Instant:
        fresh = self.fresh[0][0] if self.fresh else NEVER
        return min(fresh, *[end for end, _ in self.held]) if self.held else fresh
