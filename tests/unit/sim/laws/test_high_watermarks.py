"""What a law says of a high watermark that stands still."""

from types import SimpleNamespace
from typing import Any

import pytest

from strandline.sim.laws.partitions.partitions import STUCK_MS, Partitions

HELD = SimpleNamespace(name="t-0", log=SimpleNamespace(log_end_offset=9))
LEADER = SimpleNamespace(
    epoch=1, followers={}, high_watermark=5, isr=SimpleNamespace(isr=(1,), maximal=(1,)), lag_time_max_ms=0, min_isr=1
)


def test_a_high_watermark_that_does_not_move_is_reported_but_not_for_the_time_in_which_the_leader_stood_still() -> None:
    time = SimpleNamespace(now=100)
    machine: Any = SimpleNamespace(
        name="n1",
        clock=SimpleNamespace(now=lambda: time.now),
        node=None,
        resumed_at=0,
        config=SimpleNamespace(integer=lambda name: 0),
    )
    law: Any = SimpleNamespace(world=SimpleNamespace(time=time))
    known: Any = SimpleNamespace(epoch=1, stuck_since=-1)

    def look(now: int) -> None:
        time.now = now
        Partitions.moves_when_it_may(law, machine, HELD, LEADER, known)  # type: ignore[arg-type]  # what it asks for

    look(100)
    look(100 + STUCK_MS)
    machine.resumed_at = 5_000
    look(5_000 + STUCK_MS)
    with pytest.raises(AssertionError, match=r"t-0 on n1 stands at 5 .* and could be 9"):
        look(5_001 + STUCK_MS)
