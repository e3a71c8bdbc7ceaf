"""A machine on the network, and the process on it. `life` counts the processes."""

from collections import deque
from typing import TYPE_CHECKING

from strandline.base.effects import Endpoint, Event
from strandline.sim.world.timeline import Task

if TYPE_CHECKING:
    from strandline.sim.world.connection import Connection
    from strandline.sim.world.network import Network


class Station:
    def __init__(self, name: str, network: "Network") -> None:
        self.name = name
        self.network = network
        self.life = 0
        self.is_running = False
        self.is_powered = True
        self.is_paused = False
        self.inbox: deque[Task] = deque()  # what waits for a process that stands still
        self.outbound: dict[tuple[Endpoint, str], Connection] = {}
        self.inbound: dict[int, Connection] = {}
        self.ghosts: list[
            tuple[Connection, bool]
        ] = []  # what a power cut left with the peers; True: this was the target
        network.stations[name] = self

    def event(self, event: Event) -> None:
        raise NotImplementedError

    def deliver(self, life: int, task: Task) -> None:
        """Run something in the process, unless that is gone, and not while it stands still."""
        if life != self.life or not self.is_running:
            return
        if self.is_paused:
            self.inbox.append(lambda: self.deliver(life, task))
        else:
            task()

    def resume(self) -> None:
        self.is_paused = False
        while self.inbox and not self.is_paused:
            self.inbox.popleft()()

    def vanish(self, *, power: bool) -> None:
        """The process ends. Its kernel closes what it had open, unless that went away too."""
        ends = [(one, True) for one in self.inbound.values()] + [(one, False) for one in self.outbound.values()]
        self.inbound, self.outbound = {}, {}
        self.is_running = self.is_paused = False
        self.inbox.clear()
        self.life += 1
        if power:
            self.is_powered = False
            self.ghosts += ends
        else:
            reset(ends)

    def power_on(self) -> None:
        """A new kernel knows nothing of the connections before: it resets them when peers ask."""
        self.is_powered = True
        reset(self.ghosts)
        self.ghosts = []


def reset(ends: "list[tuple[Connection, bool]]") -> None:
    for connection, is_target in ends:
        if is_target:
            connection.down.push(connection.source_lost)
        else:
            connection.up.push(connection.target_lost)
