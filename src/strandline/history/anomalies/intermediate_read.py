"""G1b, intermediate read: a read_committed reader got something of a transaction, and passed over something else of it.

Only what lies between the first and the last that it read is asked for.
"""

from bisect import bisect_left, bisect_right

from strandline.history.anomaly import Anomaly
from strandline.history.operation import Operation, Write
from strandline.history.view import Session, View


def find(view: View) -> list[Anomaly]:
    parts: dict[int, list[Write]] = {}  # by the number of the operation
    operations: list[Operation] = []
    for sent in view.sent:
        if sent.is_transactional and sent.write.offset >= max(view.trimmed, 0):
            if not operations or operations[-1] is not sent.operation:
                operations.append(sent.operation)
            parts.setdefault(len(operations) - 1, []).append(sent.write)
    firsts = [(min(write.offset for write in writes), number) for number, writes in parts.items() if len(writes) > 1]
    firsts.sort()
    return [
        intermediate(view, session, parts[number], got, operations[number])
        for session in view.sessions
        if all(poll.is_read_committed for poll in session.polls)
        for got in [{read.offset: read.value for read in session.reads()}]
        for _, number in firsts[bisect_left(firsts, (min(got), -1)) : bisect_right(firsts, (max(got), len(operations)))]
        if is_partial(parts[number], got)
    ]


def is_partial(writes: list[Write], got: dict[int, bytes]) -> bool:
    end = max(got)
    asked = [got.get(write.offset) == write.value for write in writes if write.offset <= end]
    return any(asked) and not all(asked)


def intermediate(
    view: View, session: Session, writes: list[Write], got: dict[int, bytes], writer: Operation
) -> Anomaly:
    missed = [write for write in writes if write.offset <= max(got) and got.get(write.offset) != write.value]
    return Anomaly(
        name="G1b",
        key=view.key,
        text=f"{session.process} got some records of a transaction and passed over {missed[0].value!r}",
        offsets=tuple(write.offset for write in missed),
        values=tuple(write.value for write in missed),
        writers=(writer,),
        readers=tuple(session.polls[-1:]),
        was_committed=True,
        proved_ms=session.ended_ms,
    )
