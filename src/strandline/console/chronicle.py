"""Which leaders, epochs and ISRs partitions have had since the console looks."""

from collections import deque
from collections.abc import Iterable

from strandline.base.value import Value
from strandline.client.admin.partitions import PartitionState, Place

KEPT_MAX = 50  # of each partition


class Moment(Value, frozen=True):
    """What a partition was from this time on."""

    time_ms: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...] = ()
    is_first: bool = False  # it may have been so for longer


class Chronicle:
    def __init__(self) -> None:
        self.moments: dict[Place, deque[Moment]] = {}

    def note(self, time_ms: int, states: Iterable[PartitionState]) -> None:
        """`states`: all partitions that there are."""
        noted: dict[Place, deque[Moment]] = {}
        for state in states:
            kept = self.moments.get(state.at)
            now = Moment(
                time_ms, state.leader, state.leader_epoch, state.isr, state.elr, state.last_known_elr, kept is None
            )
            if kept is None:
                kept = deque(maxlen=KEPT_MAX)
            if not kept or is_other(kept[-1], now):
                kept.append(now)
            noted[state.at] = kept
        self.moments = noted

    def of(self, at: Place) -> list[Moment]:
        """The oldest first."""
        return list(self.moments.get(at, ()))


def is_other(before: Moment, now: Moment) -> bool:
    """A node whose metadata is old may answer after one whose is not: an older epoch is no news."""
    if now.leader_epoch < before.leader_epoch:
        return False
    return (before.leader, before.leader_epoch, before.isr, before.elr, before.last_known_elr) != (
        now.leader,
        now.leader_epoch,
        now.isr,
        now.elr,
        now.last_known_elr,
    )
