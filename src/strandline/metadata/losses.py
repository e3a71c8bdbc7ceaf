"""The loss ledger of a partition: what was lost of what had been acknowledged, or may have been, and why.

An entry is written before what it speaks of happens, and in the same metadata record: there is no unclean election
without one. What single replicas cut from their logs is in the brokers' own ledgers (`replica.hosting.ledger`).

A withdrawal is not a loss of the partition: a replica said that it lost records, and was taken from the ISR and the ELR
before it could be elected.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from strandline.base.ids import NodeId
from strandline.metadata.records import LossEvent

UNKNOWN, AT_MOST, EXACTLY = 0, 1, 2  # LossEvent.certainty: the range says nothing, bounds the loss, or is the loss
NO_END = -1  # LossEvent.end: nobody knows where it ends
KEPT = 100  # entries of one partition; the oldest go first


class Cause(IntEnum):
    """Why a broker withdraws a replica; the numbers go over the wire."""

    UNKNOWN = 0
    SHORT = 1
    MISSING = 2
    ANOTHER = 3
    DAMAGED = 4
    OFFLINE = 5


CAUSES = {
    Cause.UNKNOWN: "its broker found that it lost records",
    Cause.SHORT: "after a clean stop its log ended before what the stop had left",
    Cause.MISSING: "after a clean stop its log was not found",
    Cause.ANOTHER: "after a clean stop its log was another one than the stop had left",
    Cause.DAMAGED: "records in its log are damaged, and could not be repaired",
    Cause.OFFLINE: "its log directory was offline when its broker stopped",
}


assert CAUSES.keys() == set(Cause), "each cause has its words"


class Evidence(NamedTuple):
    """What a replica says of its log: all that an election without ISR and ELR can go by."""

    last_epoch: int  # the last leader epoch that is written in it; −1: none
    end_offset: int
    high_watermark: int

    @property
    def rank(self) -> tuple[int, int]:
        """Who is higher has more of the log (KIP-966)."""
        return self.last_epoch, self.end_offset


def loss_of(
    replica: NodeId, last_led: int, old_epoch: int, evidence: Evidence | None, time_ms: int, cause: str
) -> LossEvent:
    """What the unclean election of `replica` loses. `last_led`: the last leader epoch in which somebody led.

    A replica that wrote in that epoch has a beginning of that leader's log, in which everything was that had been
    committed before: nothing below its end is lost. One whose last epoch is older may have records there that were
    never committed, in the place of some that were; but none below the high watermark that it knows.
    """
    assert last_led <= old_epoch, "the epoch that begins has no records yet"
    start, certainty = 0, UNKNOWN
    if evidence is not None:
        is_of_last_leader = evidence.last_epoch >= last_led
        start = evidence.end_offset if is_of_last_leader else min(evidence.high_watermark, evidence.end_offset)
        certainty = AT_MOST
    assert start >= 0
    return LossEvent(
        start=start,
        end=NO_END,
        certainty=certainty,
        replica=replica,
        old_epoch=old_epoch,
        new_epoch=old_epoch + 1,
        time_ms=time_ms,
        cause=cause,
    )


def kept(losses: tuple[LossEvent, ...]) -> tuple[LossEvent, ...]:
    rest = losses[-KEPT:]
    assert rest[-1:] == losses[-1:], "the newest stays"
    return rest


def withdrawal(replica: NodeId, start: int, end: int, cause: int, time_ms: int, epoch: int) -> LossEvent:
    """A replica lost records, as its broker says; `epoch`: the partition's leader epoch by then."""
    assert replica >= 0 and epoch >= 0
    known = cause if cause in CAUSES else Cause.UNKNOWN
    start = max(0, start)
    return LossEvent(
        start=start,
        end=end if end > start else NO_END,
        certainty=AT_MOST,
        replica=replica,
        old_epoch=epoch,
        new_epoch=epoch,
        time_ms=time_ms,
        cause=CAUSES[Cause(known)],
    )


def is_written(event: LossEvent, withdrawals: Iterable[LossEvent]) -> bool:
    """Has the controller written down what this says? A broker says it until it is answered."""
    return any(identity(event) == identity(other) for other in withdrawals)


def identity(event: LossEvent) -> tuple[int, int, int, int, str]:
    return event.replica, event.start, event.end, event.time_ms, event.cause
