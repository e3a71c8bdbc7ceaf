"""What is on its way to one partition: batches in order, each with its place in the producer's sequence.

Invariants (executed by `check`):
  - batches leave and are acknowledged in the order in which they came, but for those that a broker took before an
    earlier one failed, where there is no idempotence
  - what was sent and not acknowledged is sent again, all of it, in order, and only after every answer that can still
    come has come (`in_flight` is 0): a broker that remembers five batches then knows each of them again
  - the first batch of a producer goes alone: a broker that does not know the producer takes any sequence for its first
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from struct import Struct as Layout
from typing import Any

from strandline.base.crc32c import crc32c
from strandline.wire.batch import ATTRIBUTES_AT, CRC_AT, NO_PRODUCER_ID, NO_SEQUENCE, SEQUENCE_MAX, TRANSACTIONAL

PRODUCER = Layout(">qhi")  # producer id, epoch, base sequence
PRODUCER_AT = 43
COUNT = Layout(">i")
COUNT_AT = 57
CRC = Layout(">I")


class State(Enum):
    WAITS = "not sent, or to be sent again"
    SENT = "its answer can still come"
    DONE = "acknowledged"


class Pending:
    """One batch. `split` makes two of it, each with about half of its records, if a broker finds it too large."""

    __slots__ = ("began", "bytes", "count", "sequence", "split", "state", "tag", "tries")

    def __init__(self, batch: bytearray, tag: Any, split: "Callable[[], Sequence[Pending]] | None") -> None:
        self.bytes = batch
        self.tag = tag
        self.split = split
        self.count = int(COUNT.unpack_from(batch, COUNT_AT)[0])
        self.sequence = -1
        self.state = State.WAITS
        self.began = time.monotonic()
        self.tries = 0

    def stamp(self, producer_id: int, epoch: int, sequence: int, *, transactional: bool = False) -> None:
        """Write whose batch it is into its header, with a new CRC."""
        self.sequence = sequence
        if transactional:
            self.bytes[ATTRIBUTES_AT + 1] |= TRANSACTIONAL
        PRODUCER.pack_into(self.bytes, PRODUCER_AT, producer_id, epoch, sequence)
        CRC.pack_into(self.bytes, CRC_AT, crc32c(memoryview(self.bytes)[ATTRIBUTES_AT:]))


class Lane:
    def __init__(
        self,
        topic: str,
        partition: int,
        producer_id: int,
        epoch: int,
        sequence: int,
        *,
        stamps: bool = True,
        transactional: bool = False,
    ) -> None:
        self.stamps = stamps  # into batches, with their CRC; not into those that come finished
        self.transactional = transactional
        self.topic = topic
        self.partition = partition
        self.producer_id = producer_id  # −1: not idempotent
        self.epoch = epoch
        self.sequence = sequence  # of the next batch
        self.pending: deque[Pending] = deque()
        self.in_flight = 0
        self.is_known = False  # to the broker, by an acknowledged batch
        self.leader = -1  # who has what is in flight
        self.failed = ""  # why what is in flight will have to be sent again
        self.lost_sequence = False  # the broker does not know what came before
        self.why = ""  # the last failure
        self.retry_at = 0.0
        self.tries = 0

    @property
    def is_idempotent(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID

    def check(self) -> None:
        states = [batch.state for batch in self.pending]
        assert states.count(State.SENT) == self.in_flight
        assert not states or states[0] is not State.DONE
        if self.is_idempotent:
            sequence = self.pending[0].sequence if self.pending else self.sequence
            for batch in self.pending:
                assert batch.sequence == sequence
                sequence = sequence + batch.count & SEQUENCE_MAX
            assert sequence == self.sequence

    def append(self, batch: Pending) -> None:
        if self.is_idempotent:
            batch.stamp(self.producer_id, self.epoch, self.sequence, transactional=self.transactional)
            self.sequence = self.sequence + batch.count & SEQUENCE_MAX
        elif self.stamps:
            batch.stamp(NO_PRODUCER_ID, -1, NO_SEQUENCE)
        self.pending.append(batch)

    def next_to_send(self, now: float) -> Pending | None:
        """The first batch that waits. Nothing is sent while a failure is being settled."""
        if self.failed or now < self.retry_at:
            return None
        if self.is_idempotent and self.in_flight and not self.is_known:
            return None
        return next((batch for batch in self.pending if batch.state is State.WAITS), None)

    def sent(self, batch: Pending, leader: int) -> None:
        assert self.in_flight == 0 or self.leader == leader
        self.leader = leader
        batch.state = State.SENT
        batch.tries += 1
        self.in_flight += 1

    def acknowledged(self, batch: Pending) -> None:
        assert batch.state is State.SENT
        batch.state = State.DONE
        self.is_known = True
        self.in_flight -= 1
        if not self.failed:
            self.tries = 0
        while self.pending and self.pending[0].state is State.DONE:
            self.pending.popleft()

    def refused(self, batch: Pending, why: str) -> None:
        """It will be sent again, with all behind it."""
        assert batch.state is State.SENT
        batch.state = State.WAITS
        self.in_flight -= 1
        self.failed = self.failed or why
        self.why = why

    def put_off(self, why: str, retry_at: float) -> None:
        """Nothing can be sent now."""
        self.why = why
        self.tries += 1
        self.retry_at = retry_at

    def restart(self, retry_at: float) -> None:
        """No more answers can come: what waits may be sent again from `retry_at` on."""
        assert self.in_flight == 0
        self.failed = ""
        self.lost_sequence = False
        self.tries += 1
        self.retry_at = retry_at

    def replace(self, batch: Pending, parts: Sequence[Pending]) -> None:
        """Several smaller batches in the place of one; they share its part of the sequence."""
        at = self.pending.index(batch)
        assert sum(part.count for part in parts) == batch.count
        sequence = batch.sequence
        for part in parts:
            part.began = batch.began
            if self.is_idempotent:
                part.stamp(self.producer_id, self.epoch, sequence, transactional=self.transactional)
                sequence = sequence + part.count & SEQUENCE_MAX
        del self.pending[at]
        for part in reversed(parts):
            self.pending.insert(at, part)

    def renew(self, producer_id: int, epoch: int) -> None:
        """Another producer goes on with what is left, in a sequence of its own."""
        assert self.in_flight == 0
        self.producer_id, self.epoch, self.sequence, self.is_known = producer_id, epoch, 0, False
        for batch in self.pending:
            batch.stamp(producer_id, epoch, self.sequence)
            self.sequence = self.sequence + batch.count & SEQUENCE_MAX
