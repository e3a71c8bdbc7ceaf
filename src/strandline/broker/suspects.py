"""Leaders that have perhaps just died: their connection to us broke, and metadata still names them.

A client whose leader is killed asks for metadata within milliseconds, sooner than anybody can know the next leader.
Told of the dead one, it asks again only seconds later. So an answer that would name a suspect waits a moment for the
metadata to move.

Invariants:
  - an answer waits at most `HOLD_MS`, once per loss of a leader: one that is merely slow delays nobody for long;
  - a leader that is heard again is no suspect.
"""

from collections.abc import Iterable

from strandline.base.effects import Received
from strandline.base.ids import NodeId
from strandline.base.time import NEVER, Instant, after

HOLD_MS = 500
HELD_MAX = 1000


class Suspects:
    def __init__(self) -> None:
        self.until: dict[NodeId, Instant] = {}  # kept when past: a leader is waited for once
        self.held: list[Received] = []

    def lost(self, leader: NodeId, now: Instant) -> None:
        self.until.setdefault(leader, after(now, HOLD_MS))

    def heard(self, leader: NodeId) -> None:
        self.until.pop(leader, None)

    def hold(self, received: Received, leaders: Iterable[int], now: Instant) -> bool:
        """Should this request wait, since its answer would name these leaders? If so it is kept."""
        if len(self.held) >= HELD_MAX or not any(self.until.get(NodeId(leader), now) > now for leader in leaders):
            return False
        self.held.append(received)
        return True

    def take_held(self) -> list[Received]:
        """What waits, to be tried again: metadata has moved, or time has."""
        held, self.held = self.held, []
        return held

    def deadline(self) -> Instant:
        if not self.held:
            return NEVER
        return min(self.until.values(), default=Instant(0))
