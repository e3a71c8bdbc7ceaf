"""int-send-skip: between two writes of one operation stands something else, which somebody has read or written.

By the version order, as for polls: a gap of offsets alone may be a transaction's marker.
"""

from bisect import bisect_right

from strandline.history.anomaly import Anomaly
from strandline.history.view import Sent, View


def find(view: View) -> list[Anomaly]:
    found = []
    known: list[int] | None = None
    before: Sent | None = None
    for sent in view.sent:
        if (
            before is not None
            and before.operation is sent.operation
            and sent.is_acknowledged
            and sent.write.offset > before.write.offset + 1 > 0
        ):
            known = known_offsets(view) if known is None else known
            after = bisect_right(known, before.write.offset)
            if known[after] < sent.write.offset:
                found.append(skipped(view, before, sent, known[after]))
        before = sent
    return found


def known_offsets(view: View) -> list[int]:
    offsets = dict.fromkeys(view.values)
    offsets.update(dict.fromkeys(sent.write.offset for sent in view.sent if sent.is_acknowledged))
    return sorted(offsets)


def skipped(view: View, before: Sent, sent: Sent, between: int) -> Anomaly:
    return Anomaly(
        name="int-send-skip",
        key=view.key,
        text=(
            f"{before.write.value!r} and {sent.write.value!r} were written at once, and stand at"
            f" {before.write.offset} and {sent.write.offset}, with something at {between}"
        ),
        offsets=(before.write.offset, between, sent.write.offset),
        values=(before.write.value, sent.write.value),
        writers=(sent.operation,),
    )
