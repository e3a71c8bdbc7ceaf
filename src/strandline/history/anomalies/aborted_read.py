"""G1a, aborted read: somebody read a value that certainly was not written: its writer was refused, or aborted."""

from strandline.history.anomaly import Anomaly
from strandline.history.operation import Outcome
from strandline.history.view import Sent, View


def find(view: View) -> list[Anomaly]:
    return [
        aborted(view, sent)
        for sent in view.sent
        if sent.operation.outcome is Outcome.FAIL
        and view.is_read(sent.write.value)
        # A client that was refused may write the same value again.
        and view.writers[sent.write.value].operation.outcome is Outcome.FAIL
    ]


def aborted(view: View, sent: Sent) -> Anomaly:
    value = sent.write.value
    offsets = view.offsets_of(value)
    readers = tuple(view.reader_of(offset, value) for offset in offsets)
    return Anomaly(
        name="G1a",
        key=view.key,
        text=f"{value!r} was {'aborted' if sent.is_transactional else 'refused'}, and stands at {list(offsets)}",
        offsets=offsets,
        values=(value,),
        writers=(sent.operation,),
        readers=readers,
        was_committed=not sent.is_transactional or any(offset in view.committed for offset in offsets),
        proved_ms=max(sent.operation.ended_ms, min(reader.ended_ms for reader in readers)),
    )
