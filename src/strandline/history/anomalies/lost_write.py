"""lost-write: a value that must have been read, and was not.

1. An acknowledged value that nobody has read although someone has read values behind it, by the version order
   (Jepsen's definition): a reader gets everything in order. The acknowledged offset says where it stands.
2. An acknowledged value must be read by every session that began later and has passed its offset, even if others had
   read it before: what was there once may be lost later.
3. The final reader has passed everything, and must find all that was acknowledged, and all that anybody had read: that
   was committed, whatever its acks. Only this shows a loss at the log's end.

Cost: one look per read of each session, after one sort.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from strandline.base.time import NEVER
from strandline.history.anomaly import Anomaly
from strandline.history.operation import Operation, Read
from strandline.history.view import Sent, View


def find(view: View) -> list[Anomaly]:
    highest = view.version_order[-1] if view.version_order else -1
    found = [
        unread(view, sent, highest)
        for sent in view.sent
        if sent.is_acknowledged
        and not view.is_read(sent.write.value)
        and view.trimmed <= sent.write.offset < highest
        and sent.write.offset >= 0
    ]
    due = sorted(promised(view), key=lambda item: item.offset)
    offsets = [item.offset for item in due]
    missed = Missed()
    for passed in passages(view):
        for index in range(bisect_left(offsets, passed.first), bisect_right(offsets, passed.last)):
            item = due[index]
            if item.value in passed.values:
                continue
            if not passed.is_final and item.acknowledged_ms >= passed.began_ms:
                continue
            missed.add(vanished(view, item, passed))
    return [*found, *missed.anomalies()]


class Missed:
    """A value is lost once, and reported once: by what has the fewest excuses. That a reader had seen it as committed
    is one that counts, an early proof is another; where none has both, both are reported."""

    def __init__(self) -> None:
        self.committed: dict[bytes, Anomaly] = {}
        self.others: dict[bytes, Anomaly] = {}

    def add(self, anomaly: Anomaly) -> None:
        known = self.committed if anomaly.was_committed else self.others
        [value] = anomaly.values
        if value not in known or anomaly.proved_ms < known[value].proved_ms:
            known[value] = anomaly

    def anomalies(self) -> Iterable[Anomaly]:
        yield from self.committed.values()
        for value, anomaly in self.others.items():
            if value not in self.committed or anomaly.proved_ms < self.committed[value].proved_ms:
                yield anomaly


class Due:
    """A value that was read. `acknowledged_ms` is NEVER if its writer got no success."""

    __slots__ = ("acknowledged_ms", "offset", "read_ms", "value", "writer")

    def __init__(self, offset: int, value: bytes, read_ms: int, acknowledged_ms: int, writer: Operation | None) -> None:
        self.offset = offset
        self.value = value
        self.read_ms = read_ms
        self.acknowledged_ms = acknowledged_ms
        self.writer = writer


def promised(view: View) -> Iterable[Due]:
    for offset, value in view.values.items():
        sent = view.writers.get(value)
        is_acknowledged = sent is not None and sent.is_acknowledged
        if offset < view.trimmed or view.offsets[value] != offset:
            continue
        if not is_acknowledged and (offset in view.rivals or not view.is_committed(offset)):
            continue  # Which of the rivals stands there, inconsistent-offsets asks.
        read_ms = view.readers[offset].ended_ms
        acknowledged_ms = sent.operation.ended_ms if sent is not None and is_acknowledged else NEVER
        yield Due(offset, value, read_ms, acknowledged_ms, None if sent is None else sent.operation)


class Passage:
    """The stretch of the log that one session has read."""

    def __init__(self, process: str, began_ms: int, ended_ms: int, reads: Iterable[Read], is_final: bool) -> None:
        self.process = process
        self.began_ms = began_ms
        self.ended_ms = ended_ms
        self.is_final = is_final
        self.values: dict[bytes, None] = {}
        self.first: int = NEVER
        self.last: int = -1
        for read in reads:
            self.values[read.value] = None
            self.first, self.last = min(self.first, read.offset), max(self.last, read.offset)
        if is_final:
            self.first, self.last = 0, NEVER


def passages(view: View) -> Iterable[Passage]:
    final = view.final_session
    for session in view.sessions:
        yield Passage(session.process, session.began_ms, session.ended_ms, session.reads(), session is final)
    if view.final and final is None:  # it has found nothing at all
        yield Passage(view.final, NEVER, NEVER, (), True)


def unread(view: View, sent: Sent, highest: int) -> Anomaly:
    write = sent.write
    return Anomaly(
        name="lost-write",
        key=view.key,
        text=(
            f"{write.value!r} was acknowledged at offset {write.offset}; others were read up to offset {highest}, and"
            " nobody has read it"
        ),
        offsets=(write.offset,),
        values=(write.value,),
        writers=(sent.operation,),
    )


def vanished(view: View, item: Due, passed: Passage) -> Anomaly:
    whither = "has read everything at the end" if passed.is_final else "has passed it later"
    reader = view.readers[item.offset]
    return Anomaly(
        name="lost-write",
        key=view.key,
        text=(
            f"{item.value!r} was read at offset {item.offset} by {reader.process}; {passed.process} {whither} and has"
            " not read it"
        ),
        offsets=(item.offset,),
        values=(item.value,),
        writers=() if item.writer is None else (item.writer,),
        readers=(reader,),
        was_committed=passed.is_final or item.read_ms < passed.began_ms,
        proved_ms=NEVER if passed.is_final else passed.ended_ms,
    )
