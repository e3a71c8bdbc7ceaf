"""unseen: an acknowledged value that nobody has read by the end, although readers had the time to read everything.

Only behind everything that was read; before that it is a lost-write.
"""

from strandline.history.anomaly import Anomaly
from strandline.history.view import View


def find(view: View) -> list[Anomaly]:
    if not view.sessions:
        return []  # nobody has read this key at all: nothing can be said
    order = view.version_order
    highest = order[-1] if order else -1
    return [
        Anomaly(
            name="unseen",
            key=view.key,
            text=f"{sent.write.value!r} was acknowledged at offset {sent.write.offset}, and nobody has read it",
            offsets=(sent.write.offset,),
            values=(sent.write.value,),
            writers=(sent.operation,),
        )
        for sent in view.sent
        if sent.is_acknowledged
        and not view.is_read(sent.write.value)
        and not 0 <= sent.write.offset < max(highest, view.trimmed)
    ]
