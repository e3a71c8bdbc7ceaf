"""Workloads of transactions."""

from collections.abc import Mapping, Sequence

from strandline.base.ids import OFFSETS_TOPIC, TRANSACTION_TOPIC, TopicPartition
from strandline.history import copies
from strandline.history.anomaly import Anomaly
from strandline.history.operation import Key, Operation
from strandline.sim.clients.consumer import Consumer
from strandline.sim.clients.transactions.committed_reader import CommittedReader
from strandline.sim.clients.transactions.exchanging import Exchanging
from strandline.sim.clients.transactions.transactional import Transactional
from strandline.sim.clients.transactions.transformer import FinalOffsets, Transformer
from strandline.sim.clients.transactions.two_phase import TwoPhase
from strandline.sim.clients.transactions.zombie import Zombie
from strandline.sim.workloads.workload import Workload


class InTransactions(Workload):
    """Topics that are written in transactions and read by read_committed consumers."""

    TOPICS: tuple[tuple[str, int], ...] = ()

    def setup(self) -> None:
        for name, count in self.TOPICS:
            self.admin.errands.append(self.admin.create(name, count, internal_segment_bytes=self.setting.segment_bytes))

    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(TopicPartition(name, index) for name, count in self.TOPICS for index in range(count))

    def progress(self) -> dict[str, int]:
        """Where more is lost than was promised to survive a transaction may be open for ever, and its readers wait."""
        stuck = {
            reader.name
            for reader in self.readers
            if isinstance(reader, Consumer)
            and (self.stage.is_exceeded(reader.at.topic) or self.stage.is_exceeded(TRANSACTION_TOPIC))
        }
        return {name: count for name, count in super().progress().items() if name not in stuck}

    def last_reader(self, at: TopicPartition) -> Consumer:
        return CommittedReader(self.stage, f"last-{at}", at)


class Transacting(InTransactions):
    """Transactional producers that write into several partitions of two topics, with newer and older clients, and now
    and then two with one id; and read_committed consumers."""

    TOPICS = (("left", 2), ("right", 1))

    def start(self) -> None:
        stage, pace, ats = self.stage, self.setting.pace_ms, self.partitions()
        old = stage.random("transactions").randrange(2) == 0 and not self.setting.is_duplicating
        self.writers += [
            Transactional(stage, "ta", "t-a", ats, pace_ms=pace),
            Transactional(stage, "tz", "t-a", ats, pace_ms=pace, naps=True),
            Transactional(stage, "tb", "t-b", ats, pace_ms=pace, is_old=old),
            Transactional(stage, "tc", "t-c", ats[:2], pace_ms=4 * pace, timeout_ms=600, leaves=True),
        ]
        self.readers += [CommittedReader(stage, name, at) for name, at in zip(("ua", "ub", "uc"), ats, strict=True)]


class Copying(InTransactions):
    """Members of a group copy one topic to another in transactions, while they join, hang, leave and are replaced."""

    TOPICS = (("given", 3), ("copied", 2))
    GROUP = "copiers"

    def start(self) -> None:
        stage, pace = self.stage, self.setting.pace_ms
        sources, targets = self.partitions()[:3], self.partitions()[3:]
        self.writers += [
            Transactional(stage, "td", "t-d", sources, pace_ms=2 * pace),
            *[
                Transformer(stage, name, self.GROUP, sources, targets, instance=instance, pace_ms=pace)
                for name, instance in (("te", ""), ("tf", ""), ("tg", "one"))
            ],
        ]
        self.final_offsets = FinalOffsets(stage, "settled", self.GROUP, sources)
        self.readers += [self.final_offsets, CommittedReader(stage, "ud", targets[0])]

    @property
    def is_lossy(self) -> bool:
        return any(self.stage.is_exceeded(topic) for topic in ("given", "copied", OFFSETS_TOPIC, TRANSACTION_TOPIC))

    def progress(self) -> dict[str, int]:
        """A member may have nothing to read while others are there; but some must go on."""
        counts = super().progress()
        members = [client.name for client in self.writers if isinstance(client, Transformer)]
        total = sum(counts.pop(name) for name in members)
        return counts if self.is_lossy else counts | {"the members": total}

    def wrong(self, operations: Sequence[Operation], finals: Mapping[Key, str]) -> list[Anomaly]:
        if self.is_lossy:
            return []
        sources, targets = (
            {key: name for key, name in finals.items() if key.topic == topic} for topic in ("given", "copied")
        )
        positions = {
            partition: max(position, 0)
            for partition, position in self.final_offsets.committed.items()
            if not self.stage.was_removed(self.GROUP, "given", partition)
        }
        return copies.find(operations, sources, targets, positions)


class Zombies(InTransactions):
    """Producers that wake up in the middle of a transaction which is over, beside others with their ids."""

    TOPICS = (("haunted", 3),)

    def start(self) -> None:
        stage, pace, ats = self.stage, self.setting.pace_ms, self.partitions()
        old = stage.random("zombies").randrange(3) == 0 and not self.setting.is_duplicating
        self.writers += [
            Transactional(stage, "th", "t-h", ats, pace_ms=pace),
            Zombie(stage, "za", "t-h", ats, pace_ms=pace, naps=True),
            Zombie(stage, "zb", "t-h", ats[:2], pace_ms=pace, naps=True, is_old=old),
            Zombie(stage, "zc", "t-i", ats, pace_ms=pace, naps=True, timeout_ms=800),
        ]
        self.readers += [CommittedReader(stage, name, at) for name, at in zip(("ue", "uf", "ug"), ats, strict=True)]


class TwoPhases(InTransactions):
    """Transactions that another system decides, while their clients come and go."""

    TOPICS = (("prepared", 2),)

    def start(self) -> None:
        stage, pace, ats = self.stage, self.setting.pace_ms, self.partitions()
        self.writers += [TwoPhase(stage, name, ats, pace_ms=pace) for name in ("tk", "tl")]
        self.readers += [CommittedReader(stage, "uh", ats[0])]


class Exchange(InTransactions):
    """Transactions that read what others write into the same partitions."""

    TOPICS = (("exchanged", 2),)

    def start(self) -> None:
        stage, pace, ats = self.stage, self.setting.pace_ms, self.partitions()
        self.writers += [Exchanging(stage, name, ats, pace_ms=pace) for name in ("tm", "tn", "to")]
