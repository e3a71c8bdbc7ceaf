"""The loss ledger of a cluster: DescribeLosses asked of every broker, what they say put together.

Each broker reports what its own replicas lost; all of them report what unclean elections may have lost, from the
metadata log, and it counts once.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from strandline.base.errors import ErrorCode
from strandline.base.value import Value
from strandline.client.brokers import BrokerAt, Silence, ask_each
from strandline.metadata.acknowledgements import Acknowledged
from strandline.metadata.losses import EXACTLY, NO_END
from strandline.wire.messages.own.describe_losses import DescribeLossesRequest, DescribeLossesResponse, Loss

METADATA, WITHDRAWN = "metadata", "withdrawn"
LIMIT = 100_000  # more than a broker keeps


class Ledger(Value, frozen=True):
    losses: tuple[Loss, ...]  # by time
    silent: dict[int, str]  # brokers that could not be asked, and why
    left_out: int = 0  # older entries that brokers did not send
    unread: tuple[tuple[int, str], ...] = ()  # brokers, and log directories whose ledgers they could not read
    acknowledged: Mapping[Loss, Acknowledged] = {}
    is_restricted: bool = False  # to topics that we may describe

    @property
    def is_complete(self) -> bool:
        return not self.silent and not self.left_out and not self.unread and not self.is_restricted


def ask_ledger(brokers: Mapping[int, BrokerAt], topics: Iterable[str] | None = None) -> Ledger:
    request = DescribeLossesRequest(topics=None if topics is None else tuple(topics), limit=LIMIT)
    return merged(ask_each(brokers, dict.fromkeys(brokers, request), 0))


def merged(answers: Mapping[int, DescribeLossesResponse | Silence]) -> Ledger:
    """If several brokers report the same, it is one entry."""
    silent: dict[int, str] = {}
    losses: dict[Loss, None] = {}
    left_out, unread = 0, list[tuple[int, str]]()
    acknowledged: dict[Loss, Acknowledged] = {}
    for node, answer in answers.items():
        if isinstance(answer, Silence):
            silent[node] = answer.why
        elif answer.error_code:
            silent[node] = f"refuses: {answer.error_message or ErrorCode(answer.error_code).name}"
        else:
            for reported in answer.losses:
                loss = replace(reported, acknowledged_by=None, acknowledged_ms=-1)
                losses[loss] = None
                if reported.acknowledged_by is not None:
                    acknowledged[loss] = Acknowledged(reported.acknowledged_by, reported.acknowledged_ms)
            left_out += answer.left_out
            unread += [(node, path) for path in answer.unread]
    return Ledger(tuple(sorted(losses, key=order)), silent, left_out, tuple(unread), acknowledged)


def order(loss: Loss) -> tuple[int, str, int, int, int]:
    return (loss.time_ms, loss.topic, loss.partition, loss.node_id, loss.start)


def exactly_lost(losses: Iterable[Loss]) -> int:
    """How many records are known exactly to be lost: they were cut since the leader had others, or none, or who led
    next had lost them itself. What several replicas lost by one election counts once: it came after the last epoch that
    they had, and not after that in which they lost it. No more elections are supposed than explain all of it."""
    losses = list(losses)
    led = led_with_what_was_left(losses)
    found: dict[Any, list[tuple[int, int, int, int]]] = {}
    for loss in losses:
        old_epoch, new_epoch = loss.old_epoch, loss.new_epoch
        if is_of_one_replica(loss):  # its old epoch is of what was left
            new_epoch = led.get(loss, -1)
            old_epoch = new_epoch - 1
        if loss.certainty == EXACTLY and loss.end > loss.start and new_epoch >= 0:
            at = (loss.topic_id, loss.topic, loss.partition)
            found.setdefault(at, []).append((new_epoch, old_epoch, loss.start, loss.end))
    count = 0
    for rows in found.values():
        election, ranges = -1, dict[int, list[tuple[int, int]]]()
        for new_epoch, old_epoch, start, end in sorted(rows):
            if old_epoch >= election:
                election = new_epoch
            ranges.setdefault(election, []).append((start, end))
        count += sum(map(union, ranges.values()))
    return count


def missing_copies(losses: Iterable[Loss]) -> int:
    """How many records single replicas found missing in their logs. Where their leader has them, they copied them."""
    losses = list(losses)
    led = led_with_what_was_left(losses)
    alone = [loss for loss in losses if loss.certainty == EXACTLY and is_of_one_replica(loss)]
    return sum(loss.end - loss.start for loss in alone if loss not in led)


def is_of_one_replica(loss: Loss) -> bool:
    """Was it found without regard to any leader?"""
    return loss.new_epoch < 0


def led_with_what_was_left(losses: Iterable[Loss]) -> dict[Loss, int]:
    """What replicas found missing whose logs still ended there when they began to lead, and in which epoch that was:
    nobody had more that they could have copied."""
    led: dict[Loss, int] = {}
    ends: dict[Any, list[Loss]] = {}
    for loss in sorted(losses, key=order):
        log = (loss.topic_id, loss.topic, loss.partition, loss.node_id, loss.start)
        if is_of_one_replica(loss) and loss.certainty == EXACTLY:
            ends.setdefault(log, []).append(loss)
        elif loss.end == NO_END:
            led |= dict.fromkeys(ends.pop(log, ()), loss.new_epoch)
    return led


def union(ranges: list[tuple[int, int]]) -> int:
    """How many offsets lie in any of these half-open ranges."""
    count = reached = 0
    for start, end in sorted(ranges):
        count += max(0, end - max(start, reached))
        reached = max(reached, end)
    return count


class Entry(Value, frozen=True):
    """What counts as one entry: everything that says the same about a replica, however often it happened."""

    losses: tuple[Loss, ...]  # by time

    @property
    def count(self) -> int:
        """How often. The new leader also reports what its election may lose: together that is once."""
        return len({(loss.new_epoch, loss.time_ms if is_of_one_replica(loss) else -1) for loss in self.losses})


def entries(losses: Iterable[Loss]) -> list[Entry]:
    """By the time of the first of each. An exact loss is another one each time: the records were others."""
    losses = sorted(losses, key=order)
    elected = {beginning(loss): loss for loss in losses if loss.where == METADATA}
    found: dict[Any, list[Loss]] = {}
    for loss in losses:
        face = elected.get(beginning(loss), loss) if loss.end == NO_END else loss
        found.setdefault(sameness(face), []).append(loss)
    return [Entry(tuple(rows)) for rows in found.values()]


def beginning(loss: Loss) -> tuple[Any, ...]:
    """An event of a leader, and what it may lack."""
    return (loss.topic_id, loss.partition, loss.replica, loss.new_epoch, loss.start, loss.end, loss.certainty)


def sameness(loss: Loss) -> tuple[Any, ...]:
    epochs = (loss.old_epoch, loss.new_epoch, loss.time_ms) if loss.certainty == EXACTLY else ()
    place = (loss.topic_id, loss.topic, loss.partition, loss.where, loss.node_id, loss.replica)
    return (*place, loss.start, loss.end, loss.certainty, loss.cause, epochs)


def as_json(entry: Entry, seen: Acknowledged | None = None) -> dict[str, Any]:
    loss, last = next((one for one in entry.losses if one.where == METADATA), entry.losses[0]), entry.losses[-1]
    return {
        "time_ms": loss.time_ms,
        "topic": loss.topic,
        "partition": loss.partition,
        "where": loss.where,
        "broker": loss.node_id,
        "replica": loss.replica,
        "start": loss.start,
        "end": loss.end,
        "certainty": loss.certainty,
        "old_epoch": loss.old_epoch,
        "new_epoch": last.new_epoch,
        "cause": loss.cause,
        "count": entry.count,
        "last_time_ms": last.time_ms,
        "acknowledged": seen is not None,
        "acknowledged_by": None if seen is None else seen.by,
        "acknowledged_ms": None if seen is None else seen.time_ms,
    }
