"""G0, write cycle: of two transactions the one that was over before the other began has a record behind one of it.

Kafka lets the batches of transactions interleave that are open at the same time, so that alone is no anomaly. One
process, and all with one transactional id, have one transaction after the other.
"""

from strandline.history.anomaly import Anomaly
from strandline.history.operation import Outcome
from strandline.history.view import Sent, View


def find(view: View) -> list[Anomaly]:
    placed = [sent for sent in view.sent if sent.is_transactional and sent.write.offset >= 0 and is_there(view, sent)]
    placed.sort(key=lambda sent: -sent.write.offset)
    found = []
    first: Sent | None = None  # of all that stand behind: that of the transaction that was over first
    for sent in placed:
        if first is not None and first.operation.ended_ms < sent.operation.began_ms:
            found.append(cycle(view, sent, first))
        if first is None or sent.operation.ended_ms < first.operation.ended_ms:
            first = sent
    return found


def is_there(view: View, sent: Sent) -> bool:
    """A transaction that nobody knows to be committed is known by its readers, where they find it."""
    if sent.operation.outcome is Outcome.OK:
        return True
    return sent.operation.outcome is Outcome.UNKNOWN and view.values.get(sent.write.offset) == sent.write.value


def cycle(view: View, later: Sent, earlier: Sent) -> Anomaly:
    return Anomaly(
        name="G0",
        key=view.key,
        text=(
            f"{later.write.value!r} is at {later.write.offset}, before {earlier.write.value!r} at"
            f" {earlier.write.offset}, whose transaction was over when the other one began"
        ),
        offsets=(later.write.offset, earlier.write.offset),
        values=(later.write.value, earlier.write.value),
        writers=(later.operation, earlier.operation),
        was_committed=True,
        proved_ms=later.operation.ended_ms,
    )
