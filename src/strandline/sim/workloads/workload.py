"""A piece of work that clients do: what must be there before, who does it, and what must go on.

Workloads know nothing of the simulator, only a `Stage` and the admin client that serves all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from strandline.base.ids import TopicPartition, Uuid
from strandline.base.value import Value
from strandline.history.anomaly import Anomaly
from strandline.history.operation import Key, Operation
from strandline.sim.clients.admin import Admin
from strandline.sim.clients.client import Client, Stage
from strandline.sim.clients.committer import Committer
from strandline.sim.clients.consumer import Consumer
from strandline.sim.clients.producer import Producer
from strandline.sim.clients.transactions.transactional import Transactional


class Setting(Value, frozen=True):
    """What workloads know about the cluster."""

    min_isr: int
    replication_factor: int
    segment_bytes: str
    pace_ms: int  # between two batches of one producer, on average
    is_duplicating: bool = False  # requests may come twice


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
        """What a last reader reads from beginning to end."""
        return ()

    def last_reader(self, at: TopicPartition) -> Consumer:
        return Consumer(self.stage, f"last-{at}", at)

    def wrong(self, operations: Sequence[Operation], finals: Mapping[Key, str]) -> list[Anomaly]:
        """What the whole history shows to be wrong in this piece of work, beside the anomalies of all histories."""
        return []

    def become_steady(self) -> None:  # noqa: B027  # most have nothing to do for that
        """Faults have ended: clients go on with their work, and with nothing else."""

    def why_not_stable(self, topics: Mapping[str, tuple[Uuid, int]]) -> str | None:
        """None: what clients have asked for, and is to be so once all is calm, is so. `topics`: by name, with the
        number of partitions."""
        return None

    def changes_once_more(self, topics: Mapping[str, tuple[Uuid, int]]) -> bool:
        """All is settled. True: somebody changes something, and all must be settled again."""
        return False

    def progress(self) -> dict[str, int]:
        """Counters by client: each of them must grow once faults have ended."""
        done = {client.name: client.acked for client in self.writers if is_answered(client)}
        return done | {client.name: client.read for client in self.readers if isinstance(client, Consumer)}


def is_answered(client: Client) -> TypeGuard[Producer | Committer | Transactional]:
    """Must it get something through, and is that counted?"""
    if isinstance(client, Producer):
        return client.acks != 0
    return isinstance(client, Committer) or (isinstance(client, Transactional) and not client.naps)
