"""A piece of work that clients do: what must be there before, who does it, and what must be true afterwards.

Workloads know nothing of the simulator, only a `Stage` and the admin client that serves all of them.
"""

from abc import ABC, abstractmethod

from strandline.base.ids import TopicPartition
from strandline.base.value import Value
from strandline.sim.clients.admin import Admin
from strandline.sim.clients.client import Client, Stage


class Setting(Value, frozen=True):
    """What workloads are told of the cluster."""

    min_isr: int
    replication_factor: int
    segment_bytes: str
    pace_ms: int  # between two batches of one producer, on average


class Workload(ABC):
    def __init__(self, stage: Stage, admin: Admin, setting: Setting) -> None:
        self.stage = stage
        self.admin = admin
        self.setting = setting
        self.writers: list[Client] = []  # they stop first, when faults have ended
        self.readers: list[Client] = []  # and these when they have read everything

    @abstractmethod
    def setup(self) -> None:
        """Let the admin make the topics."""

    def clients(self) -> list[Client]:
        return [*self.writers, *self.readers]

    @abstractmethod
    def start(self) -> None:
        """Make the clients."""

    def partitions(self) -> tuple[TopicPartition, ...]:
        """What a last reader shall read from beginning to end."""
        return ()

    def check(self) -> str | None:
        """When all clients are done: what is wrong, beyond what the laws and the history's checks find."""
        return None
