"""Consume, transform, produce: a member of a group copies what it reads, and commits its position with the copies.

Each member has a transactional id of its own; who may commit for the group is decided by its generation (KIP-447). Now
and then a member stands still between its records and its position, for longer than a rebalance takes, and goes on as
if nothing had happened. The value of each copy says of which record it is: in the end each record below the group's
position has one copy, and no other record has any (`history/copies.py`).
"""

from collections.abc import Generator, Sequence
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, TRANSACTION_TOPIC, TopicPartition
from strandline.history.operation import Outcome, Read
from strandline.sim.clients.client import Life, Request, Stage
from strandline.sim.clients.committer import Coordinated
from strandline.sim.clients.member import STILL_MS, Member
from strandline.sim.clients.transactions.tap import Tap
from strandline.sim.clients.transactions.transactional import FENCED, PATIENCE_MS, Transactional
from strandline.wire.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

E = ErrorCode
VERSION = 5
ELSEWHERE = (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE)
AGAIN = (*ELSEWHERE, E.COORDINATOR_LOAD_IN_PROGRESS, E.REQUEST_TIMED_OUT, E.UNKNOWN_TOPIC_OR_PARTITION)


class Transformer(Transactional):
    def __init__(
        self,
        stage: Stage,
        name: str,
        group: str,
        sources: Sequence[TopicPartition],
        ats: Sequence[TopicPartition],
        *,
        instance: str = "",
        pace_ms: int = 30,
    ) -> None:
        super().__init__(stage, name, f"t-{name}", ats, pace_ms=pace_ms)
        self.member = Member(stage, f"{name}-member", group, sources[0].topic, {}, instance)
        self.taps = {at.partition: Tap(stage, f"{name}-{at}", at) for at in sources}
        self.places: dict[int, int] = {}  # where to read next, of the partitions that it was assigned

    def live(self) -> Life:
        while not self.is_stopped:
            if not self.is_fit:
                yield from self.init(goes_on=False)
            elif (yield from self.member.join()) and (yield from self.find_places()):
                yield from self.work()
            yield self.pause(20, 100)
        self.report(f"has committed {self.acked} transactions")

    def find_places(self) -> Generator[Any, Any, bool]:
        """An open transaction of who had the partition before must be over first."""
        self.places = {}
        for partition in self.member.positions:
            found = yield from self.member.fetch(partition, is_stable=True)
            if found is None:
                return False
            self.places[partition] = max(found, 0)
        return True

    def work(self) -> Life:
        while not self.is_stopped and self.is_fit:
            for partition in self.places:
                if not (yield from self.copy(partition)):
                    return
            if self.rng.randrange(24) == 0:
                yield from self.member.leave()
                return
            if not (yield from self.member.beat()):
                return
            yield self.pause(0, 2 * self.pace_ms)

    def copy(self, partition: int) -> Generator[Any, Any, bool]:
        """One transaction. False: who it is, or where the group is, must be found out again."""
        found = yield from self.taps[partition].poll(self.places[partition])
        if found is None:
            return True
        reads, place = found
        if not reads:
            self.places[partition] = place  # all that lay there was aborted, or markers
            return True
        began = self.begin()
        self.reads += reads
        error = yield from self.deliver(self.copies(partition, reads), began)
        if error is E.NONE and self.rng.randrange(8) == 0:
            yield self.pause(*STILL_MS)
        if error is E.NONE:
            error = yield from self.commit_place(partition, place)
        is_refused = error is not E.NONE
        commits = not is_refused and self.rng.randrange(5) > 0
        if is_refused:
            self.member.refused(error)
            self.is_fit = error not in FENCED
        outcome = yield from self.finish(began, error, commits=commits)
        if outcome is Outcome.OK:
            self.places[partition] = place
        return not is_refused and self.is_fit

    def copies(self, partition: int, reads: Sequence[Read]) -> list[Any]:
        """In one partition or in two, chosen by chance."""
        chosen = self.rng.sample(self.ats, min(len(self.ats), self.rng.randrange(1, 3)))
        shares: list[list[str]] = [[] for _ in chosen]
        for number, read in enumerate(reads):
            shares[number % len(chosen)].append(f":{partition}@{read.offset}")
        return [self.batch(at, share) for at, share in zip(chosen, shares, strict=True) if share]

    def commit_place(self, partition: int, place: int) -> Generator[Any, Any, ErrorCode]:
        """Again and again, until there is a definite answer."""
        member, began = self.member, self.stage.now_ms()
        rows = (TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=place),)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=member.group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            topics=(TxnOffsetCommitRequestTopic(name=member.topic, partitions=rows),),
        )
        while self.stage.now_ms() < began + PATIENCE_MS:
            coordinator = yield from member.find_coordinator()
            if coordinator is None:
                continue
            answer = yield Request(coordinator, request, VERSION, 2500)
            error = None if answer is None else E(answer.topics[0].partitions[0].error_code)
            if error is not None and error not in AGAIN:
                return error
            if error is None or error in ELSEWHERE:
                member.coordinator = None
            yield self.pause(10, 60)
        return E.REQUEST_TIMED_OUT


class FinalOffsets(Coordinated):
    """Looks where a group is when all its members are gone."""

    def __init__(self, stage: Stage, name: str, group: str, sources: Sequence[TopicPartition]) -> None:
        super().__init__(stage, name, group, sources[0].topic)
        self.partitions = [at.partition for at in sources]
        self.committed: dict[int, int] = {}

    def live(self) -> Life:
        while not self.is_stopped:
            yield 100
        for partition in self.partitions:
            # Where decisions are lost a transaction may be open for ever, and so its offset pending.
            while partition not in self.committed and not self.is_exceeded():
                found = yield from self.fetch(partition, is_stable=True)
                if found is not None:
                    self.committed[partition] = found

    def is_exceeded(self) -> bool:
        return self.stage.is_exceeded(OFFSETS_TOPIC) or self.stage.is_exceeded(TRANSACTION_TOPIC)
