"""What a machine's page cache lacks, by chance: a Fetch does not wait for that, and is answered later."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from strandline.base.effects import Warm, Warmed
from strandline.sim.world.disk import SimDisk
from strandline.sim.world.ground import Ground


class Owner(Protocol):
    name: str
    disk: SimDisk
    life: int

    def deliver(self, life: int, task: Callable[[], None]) -> None: ...
    def event(self, event: Any) -> None: ...


class PageCache:
    def __init__(self, world: Ground, owner: Owner) -> None:
        self.world = world
        self.owner = owner
        self.rng = world.random(f"{owner.name} page cache")
        self.cold_percent, self.cold_ms = world.options.cold_percent, world.options.cold_ms
        if self.cold_percent:
            owner.disk.draw_cached = lambda: self.rng.randrange(100) >= self.cold_percent

    def warm(self, effect: Warm) -> None:
        """What was asked for may be cut, moved or deleted by the time at which it is there."""
        self.world.seen["cold read"] += 1
        answer = partial(self.owner.event, Warmed(effect.token))
        arrival = partial(self.owner.deliver, self.owner.life, answer)
        self.world.time.later(1 + self.rng.randrange(self.cold_ms), arrival)
