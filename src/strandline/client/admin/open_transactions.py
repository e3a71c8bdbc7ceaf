"""Transactions that are open in partitions: those that hang, and those that hold up readers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from strandline.base.value import Value
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.replica_logs import LogReport, ReplicaLog
from strandline.client.admin.transactions import Known, ProducerAt, Uncertain, known_to_coordinators, producers_at
from strandline.client.ask import Servers
from strandline.client.brokers import BrokerAt


class Held(Value, frozen=True):
    """A transaction that keeps the last stable offset of a partition below the high watermark."""

    producer: ProducerAt
    known: Known
    last_stable_offset: int
    high_watermark: int


class Found(NamedTuple):
    hanging: list[ProducerAt]
    unknown: list[str]  # what was not found out, and why


def find_hanging(
    bootstrap: Servers,
    brokers: Mapping[int, BrokerAt],
    states: Sequence[PartitionState],
    opened_before_ms: int,
    broker: int | None = None,
) -> Found:
    """Those of these partitions that were last written to before, as their leaders know them, or this broker."""
    asked: dict[int, list[Place]] = {}
    unknown = []
    for state in states:
        if broker is None and state.is_unavailable:
            unknown.append(f"{state.at}: it has no leader that is online")
        elif broker is None or broker in state.replicas:
            asked.setdefault(state.leader if broker is None else broker, []).append(state.at)
    opened: dict[int, list[ProducerAt]] = {}
    for (node, at), answer in producers_at(brokers, asked).items():
        if isinstance(answer, str):
            unknown.append(f"{at}: {answer}")
            continue
        late = [one for one in answer if one.is_open and one.last_timestamp < opened_before_ms]
        opened.setdefault(node, []).extend(late)
    known = known_to_coordinators(bootstrap, brokers, [one for rows in opened.values() for one in rows])
    for one, what in known.items():
        if isinstance(what, Uncertain):
            unknown.append(f"{one.at}: producer {one.producer_id} has a transaction open there, but {what.why}")
    leaders = {state.at: state.leader for state in states if not state.is_unavailable}
    suspects: dict[int, list[ProducerAt]] = {}
    for node, rows in opened.items():  # a follower may not have the marker yet that its leader has
        for one in rows:
            if known[one] is None:
                suspects.setdefault(leaders.get(one.at, node), []).append(one)
    return Found(sorted(still_open(brokers, suspects), key=lambda one: (one.at, one.start_offset)), unknown)


def still_open(brokers: Mapping[int, BrokerAt], suspects: Mapping[int, Iterable[ProducerAt]]) -> list[ProducerAt]:
    """Those that did not end while their coordinators were asked."""
    asked = {node: [one.at for one in rows] for node, rows in suspects.items()}
    answers = producers_at(brokers, {node: places for node, places in asked.items() if places})
    return [one for node, rows in suspects.items() for one in rows if is_open_in(answers[node, one.at], one)]


def is_open_in(answer: tuple[ProducerAt, ...] | str, one: ProducerAt) -> bool:
    """If nobody says that it ended, it has not."""
    if isinstance(answer, str):
        return True
    return any((row.producer_id, row.start_offset) == (one.producer_id, one.start_offset) for row in answer)


def holders(
    bootstrap: Servers,
    brokers: Mapping[int, BrokerAt],
    states: Iterable[PartitionState],
    reports: Mapping[Place, Iterable[LogReport]],
) -> dict[Place, Held]:
    """The first open transaction of each partition whose readers wait for it. Of the others nothing is asked."""
    waiting: dict[Place, tuple[int, ReplicaLog]] = {}
    for state in states:
        for row in reports.get(state.at, ()):
            if isinstance(row, ReplicaLog) and row.replica == state.leader and is_held(row):
                waiting[state.at] = state.leader, row
    asked: dict[int, list[Place]] = {}
    for at, (leader, _) in waiting.items():
        asked.setdefault(leader, []).append(at)
    first: dict[int, list[ProducerAt]] = {}
    for (node, at), answer in producers_at(brokers, asked).items():
        opened = [one for one in answer if one.is_open] if not isinstance(answer, str) else []
        one = min(opened, key=lambda one: one.start_offset, default=None)
        if one is not None and one.start_offset <= waiting[at][1].last_stable_offset:  # else readers have gone on
            first.setdefault(node, []).append(one)
    known = known_to_coordinators(bootstrap, brokers, [one for rows in first.values() for one in rows])
    suspects = {node: [one for one in rows if known[one] is None] for node, rows in first.items()}
    is_unknown = set(still_open(brokers, suspects))
    found = {}
    for one, what in known.items():
        if what is not None or one in is_unknown:
            log = waiting[one.at][1]
            found[one.at] = Held(one, what, log.last_stable_offset, log.high_watermark)
    return found


def is_held(row: ReplicaLog) -> bool:
    return 0 <= row.last_stable_offset < row.high_watermark
