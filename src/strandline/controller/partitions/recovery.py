"""Unclean recovery (KIP-966): where neither ISR nor ELR has anyone who may lead, the replica with the most data does.

The replicas that are there are asked what their logs end with, but for those that are still being added. The highest
(last written leader epoch, log end offset) wins, and of equals the first in the order of replicas. When there is enough
to choose from:

  - Balanced: all members of LastKnownElr have answered, and all others whose brokers are heard of, or the time is up.
    Who is in LastKnownElr may have all that was committed. Where it is empty it is unknown, and nobody is elected.
  - Aggressive: all replicas have answered; or the time is up, and any has; or the first answer after that.
  - By hand (ElectLeaders version 3): the same two, but who asks waits, so nobody is waited for that is not active; or
    a replica that was named, as soon as it has said what will be lost.

Nothing of this is in the metadata log: a new controller begins anew. An answer counts while its broker is registered as
it was, and the partition has had no other epoch since: else the log may have changed.

Invariants (executed by `check`):
  - `leaderless` has exactly the partitions without a leader;
  - only these are recovered.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from strandline.base.effects import Effect, Report
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition
from strandline.base.time import NEVER, Instant, after
from strandline.controller.basis import Basis
from strandline.controller.partition import Wish, plan_change
from strandline.controller.partitions.inquiries import Answer, Inquiries
from strandline.controller.partitions.lossless import loses_nothing
from strandline.controller.partitions.standing import Standing, standing_in
from strandline.metadata.image import Image, Partition, Topic
from strandline.metadata.records import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord
from strandline.metadata.strategy import Strategy
from strandline.wire.messages.own.get_replica_log_info import GetReplicaLogInfoResponse


class Recovery:
    """The recovery of one partition. `designated`: the broker that an operator named, if any."""

    def __init__(
        self, strategy: Strategy, ends: Instant, cause: str, designated: NodeId = NOBODY, is_manual: bool = False
    ) -> None:
        self.strategy = strategy
        self.ends = ends  # when the time for answers is up
        self.cause = cause
        self.designated = designated
        self.is_manual = is_manual
        self.interrupted: Recovery | None = None  # goes on, by its own time, if this one by hand elects nobody


class Recoveries:
    def __init__(self, listener: str) -> None:
        self.inquiries = Inquiries(listener)
        self.leaderless: dict[TopicIdPartition, None] = {}
        self.partitions: dict[TopicIdPartition, Recovery] = {}  # those that are being recovered
        self.answers: dict[TopicIdPartition, dict[NodeId, Answer]] = {}
        self.finished = 0  # since this node became the controller
        self.is_due = False  # may something be decided, or asked, that could not before?
        self.next_end = NEVER  # the first of `Recovery.ends`

    def begin(self, image: Image) -> None:
        """From the image that a new controller begins with."""
        assert not self.partitions, "a new controller begins anew"
        self.leaderless = dict.fromkeys(image.leaderless())
        self.is_due = bool(self.leaderless)

    def written(self, records: Iterable[Any], image: Image) -> None:
        """Records were written and applied."""
        for record in records:
            if isinstance(record, PartitionChangeRecord | PartitionRecord):
                at = TopicIdPartition(record.topic_id, record.partition_id)
                partition = image.partition(at)
                if partition is not None and partition.leader == NOBODY:
                    self.leaderless[at] = None
                elif at in self.leaderless:
                    self.forget(at)
                    continue
                else:
                    continue  # the daily life of partitions that somebody leads
            elif isinstance(record, RemoveTopicRecord):
                for at in [at for at in self.leaderless if at.topic_id == record.topic_id]:
                    self.forget(at)
            self.is_due = self.is_due or bool(self.leaderless)

    def forget(self, at: TopicIdPartition) -> None:
        self.leaderless.pop(at, None)
        self.answers.pop(at, None)
        recovery = self.partitions.pop(at, None)
        if recovery is not None and recovery.is_manual:
            self.is_due = True  # the client gets its answer at once

    # --- by hand

    def begin_manual(
        self, at: TopicIdPartition, strategy: Strategy, designated: NodeId, cause: str, ends: Instant
    ) -> None:
        assert at in self.leaderless
        assert cause
        before = self.partitions.get(at)
        self.partitions[at] = recovery = Recovery(strategy, ends, cause, designated, is_manual=True)
        recovery.interrupted = before.interrupted if before is not None and before.is_manual else before
        assert recovery.interrupted is None or not recovery.interrupted.is_manual, "of two by hand the later one counts"
        self.is_due = True

    def give_up(self, at: TopicIdPartition) -> None:
        """Who asked for it no longer waits."""
        recovery = self.partitions.get(at)
        if recovery is not None and recovery.is_manual:
            del self.partitions[at]
            if recovery.interrupted is not None:
                self.partitions[at] = recovery.interrupted
            self.is_due = True

    # --- events

    def answered(self, node: NodeId, serial: int, response: GetReplicaLogInfoResponse | None, now: Instant) -> None:
        for at, answer in self.inquiries.answered(node, serial, response, now):
            if at in self.leaderless:
                self.answers.setdefault(at, {})[node] = answer
        self.is_due = True

    def deadline(self) -> Instant:
        if self.is_due:
            return Instant(0)
        return min(self.inquiries.deadline(), self.next_end)

    def expire(self, now: Instant) -> None:
        if self.inquiries.expire(now):
            self.is_due = True
        if self.next_end <= now:
            self.is_due = True

    # --- decisions

    def advance(self, basis: Basis, heard_of: Collection[NodeId]) -> tuple[list[PartitionChangeRecord], list[Effect]]:
        """Begin what must be recovered, end what need not be, elect whom enough is known of, and ask for the rest."""
        self.is_due = False
        self.next_end = NEVER
        if not basis.config.is_recovery_managed and not self.partitions:
            return [], []
        changes: list[PartitionChangeRecord] = []
        effects: list[Effect] = []
        wanted: dict[NodeId, list[TopicIdPartition]] = {}
        for at in self.leaderless:
            topic, partition = basis.at(at)
            effects += self.consider(at, topic, partition, basis)
            recovery = self.partitions.get(at)
            if recovery is None:
                continue
            active = active_replicas(partition, recovery.designated, basis)
            known = self.known(at, partition, active, basis)
            expected = active if recovery.is_manual else expected_replicas(partition, heard_of, basis)
            best = choice(recovery, partition, expected, known, basis.now)
            if best is None:
                for node in active:
                    if node not in known:
                        wanted.setdefault(node, []).append(at)
                continue
            assert best in known
            is_lossless = loses_nothing(partition, best, known)
            evidence = known[best].evidence
            wish = Wish(designated=best, evidence=evidence, cause=recovery.cause, is_lossless=is_lossless)
            change = plan_change(at, partition, wish, basis.rules(topic))
            assert change is not None and change.leader != NOBODY, "who was chosen is active"
            changes.append(change)
            if is_lossless:
                name = f"{topic.name}-{at.partition}"
                why = "the logs of all who may have what was committed are whole"
                effects.append(Report("info", f"{name}: broker {best} is elected, and nothing is lost: {why}"))
        self.finished += len(changes)
        assert len(changes) <= len(self.leaderless)
        effects += self.inquiries.ask(wanted, basis.image.brokers)
        ends = (recovery.ends for recovery in self.partitions.values() if recovery.ends > basis.now)
        self.next_end = min(ends, default=NEVER)
        assert self.next_end > basis.now, "what is over has been decided, or waits for answers"
        return changes, effects

    def consider(self, at: TopicIdPartition, topic: Topic, partition: Partition, basis: Basis) -> Iterator[Effect]:
        """Must it be recovered, as things stand? What somebody asked for goes on in any case."""
        assert partition.leader == NOBODY
        before = self.partitions.get(at)
        if before is not None and before.is_manual:
            return
        strategy = basis.strategy(topic)
        is_managed = basis.config.is_recovery_managed
        if not is_managed or standing_in(basis.image, partition, strategy, is_managed) is not Standing.RECOVERY:
            self.partitions.pop(at, None)
            return
        if before is None or before.strategy is not strategy:
            ends = after(basis.now, basis.config.recovery_timeout_ms)
            self.partitions[at] = Recovery(strategy, ends, f"unclean recovery, {strategy.value}")
            yield Report("warning", f"unclean recovery ({strategy.value}) of {topic.name}-{at.partition} begins")

    def known(
        self, at: TopicIdPartition, partition: Partition, active: Sequence[NodeId], basis: Basis
    ) -> dict[NodeId, Answer]:
        """The answers that count."""
        assert at in self.leaderless
        answers = self.answers.get(at, {})
        brokers = basis.image.brokers
        return {
            node: answers[node]
            for node in active
            if node in answers
            and answers[node].broker_epoch == brokers[node].epoch
            and answers[node].leader_epoch == partition.leader_epoch
        }

    def check(self, image: Image) -> None:
        assert set(self.partitions) <= set(self.leaderless)
        assert set(self.answers) <= set(self.leaderless)
        assert set(self.leaderless) == set(image.leaderless())


def choice(
    recovery: Recovery, partition: Partition, expected: Sequence[NodeId], known: dict[NodeId, Answer], now: Instant
) -> NodeId | None:
    """Who leads, or None as long as too little is known. `expected`: others that are waited for, but not too long.

    Of all who lose power at once, who registers first is still held to be dispensable, since the others are believed to
    be in sync: it is in no LastKnownElr, and may have the most. It must only have the time to become active.
    """
    assert partition.leader == NOBODY
    if recovery.designated != NOBODY:
        return recovery.designated if recovery.designated in known else None
    have_all_answered = all(node in known for node in expected)
    is_over = recovery.ends <= now
    if recovery.strategy is Strategy.BALANCED:
        asked_for = (*partition.isr, *partition.elr, *partition.last_known_elr)  # where asked for by hand, all of them
        # guard: recovery-without-all-who-were-eligible
        is_enough = bool(asked_for) and all(node in known for node in asked_for) and (have_all_answered or is_over)
    elif recovery.is_manual:
        is_enough = have_all_answered or is_over
    else:
        is_enough = all(node in known for node in candidates(partition)) or is_over
    return best_of(partition, known) if is_enough and known else None


def best_of(partition: Partition, known: dict[NodeId, Answer]) -> NodeId:
    """The most data; of equals the first replica."""
    assert known
    return max((node for node in partition.replicas if node in known), key=lambda node: known[node].evidence.rank)


def candidates(partition: Partition) -> Iterator[NodeId]:
    """All replicas but those that are still being added, and never were in sync: the end of the reassignment would
    take the others away, and with them perhaps all that there is."""
    known = (*partition.isr, *partition.elr, *partition.last_known_elr)
    # guard: added-replica-recovered
    return (node for node in partition.replicas if node not in partition.adding_replicas or node in known)


def active_replicas(partition: Partition, designated: NodeId, basis: Basis) -> list[NodeId]:
    """Those that might lead: their brokers are active and their directories online."""
    asked = (*candidates(partition), designated)
    return [node for node in partition.replicas if node in asked and basis.image.lives(node, partition)]


def expected_replicas(partition: Partition, heard_of: Collection[NodeId], basis: Basis) -> list[NodeId]:
    """Those that are active, or about to be: a broker that has just registered reads the metadata log first."""
    return [node for node in candidates(partition) if node in heard_of and basis.image.is_online(node, partition)]
