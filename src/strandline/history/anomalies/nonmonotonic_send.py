"""nonmonotonic-send, int-nonmonotonic-send: a later acknowledged write of one process stands before an earlier one.

Later by its beginning and end: of operations that overlap (several batches in flight) nothing is said. But a write is
compared with all that ended before it began, whatever overlapped in between.
"""

from bisect import bisect_right

from strandline.history.anomaly import Anomaly, distinct
from strandline.history.view import Sent, View


class Line:
    """Some of one process's acknowledged writes, in the order in which they ended."""

    def __init__(self) -> None:
        self.ended_ms: list[int] = []
        self.furthest: list[Sent] = []  # of all writes up to this one, that with the highest offset

    def before(self, began_ms: int) -> Sent | None:
        """The furthest write of all that had ended by then."""
        count = bisect_right(self.ended_ms, began_ms)
        return self.furthest[count - 1] if count else None

    def add(self, sent: Sent) -> None:
        known = self.furthest[-1] if self.furthest else sent
        self.ended_ms.append(sent.operation.ended_ms)
        self.furthest.append(sent if sent.write.offset >= known.write.offset else known)


class Sender:
    """One process's acknowledged writes. Those of acks=all are compared with one another first: if a weaker one that
    went further were shown as the witness, it would excuse them."""

    def __init__(self) -> None:
        self.strong = Line()
        self.all = Line()
        self.last: Sent | None = None

    def witness(self, sent: Sent) -> Sent | None:
        """A write that had ended before this one began, and stands behind it."""
        lines = (self.strong, self.all) if sent.operation.acks == -1 else (self.all,)
        for line in lines:
            known = line.before(sent.operation.began_ms)
            if known is not None and sent.write.offset <= known.write.offset:
                return known
        return None

    def add(self, sent: Sent) -> None:
        if sent.operation.acks == -1:
            self.strong.add(sent)
        self.all.add(sent)
        self.last = sent


def find(view: View) -> list[Anomaly]:
    found = []
    senders: dict[str, Sender] = {}
    for sent in view.sent:
        if not sent.is_acknowledged or sent.write.offset < 0:
            continue
        sender = senders.setdefault(sent.operation.process, Sender())
        last = sender.last
        if last is not None and last.operation is sent.operation:
            if sent.write.offset <= last.write.offset:
                found.append(went_back(view, "int-nonmonotonic-send", last, sent))
        else:
            known = sender.witness(sent)
            if known is not None:
                found.append(went_back(view, "nonmonotonic-send", known, sent))
        sender.add(sent)
    return found


def went_back(view: View, name: str, known: Sent, sent: Sent) -> Anomaly:
    first, second = known.write, sent.write
    return Anomaly(
        name=name,
        key=view.key,
        text=(
            f"{sent.operation.process} wrote {second.value!r} after {first.value!r}, and they stand at"
            f" {second.offset} and {first.offset}"
        ),
        offsets=(first.offset, second.offset),
        values=(first.value, second.value),
        writers=distinct(known.operation, sent.operation),
        proved_ms=sent.operation.ended_ms,
    )
