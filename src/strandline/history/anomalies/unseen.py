"""unseen: an acknowledged value that nobody has read by the end, although readers had the time to read everything.

Only behind everything that was read, or where its offset is not known; before that it is a lost-write.
"""

from strandline.history.anomaly import Anomaly
from strandline.history.view import Sent, View


def find(view: View) -> list[Anomaly]:
    if not view.sessions and not view.final:
        return []  # nobody has read this key at all: nothing can be said
    highest = view.version_order[-1] if view.version_order else -1
    return [
        Anomaly(
            name="unseen",
            key=view.key,
            text=f"{sent.write.value!r} was acknowledged at {place(sent)}, and nobody has read it",
            offsets=(sent.write.offset,),
            values=(sent.write.value,),
            writers=(sent.operation,),
        )
        for sent in view.sent
        if sent.is_acknowledged and not view.is_read(sent.write.value) and must_be_read(view, sent, highest)
    ]


def must_be_read(view: View, sent: Sent, highest: int) -> bool:
    if sent.write.offset < 0:
        return view.trimmed <= 0  # it may have been among what was deleted
    return sent.write.offset >= max(highest, view.trimmed)


def place(sent: Sent) -> str:
    return "an unknown offset" if sent.write.offset < 0 else f"offset {sent.write.offset}"
