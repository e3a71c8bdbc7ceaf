"""lost-write: an acknowledged value that must have been read, and was not.

It must have been when someone has read values behind it, by the version order (Jepsen's definition): a reader gets
everything in order. The offset that the acknowledgement named says where it stands. It must also have been read by
every session that began after the acknowledgement and has passed that offset, even if others had read it before: what
was there once may be lost later.
"""

from strandline.history.anomaly import Anomaly
from strandline.history.view import Sent, Session, View


def find(view: View) -> list[Anomaly]:
    order = view.version_order
    highest = order[-1] if order else -1
    sessions = [Passed(session) for session in view.sessions]
    found = []
    for sent in view.sent:
        offset = sent.write.offset
        if not sent.is_acknowledged or 0 <= offset < view.trimmed:
            continue
        if not view.is_read(sent.write.value):
            if 0 <= offset < highest:
                found.append(lost(view, sent, f"others were read up to offset {highest}, and nobody has read it"))
            continue
        for passed in sessions:
            if passed.should_have(sent) and sent.write.value not in passed.values:
                found.append(lost(view, sent, f"{passed.session.process} has passed it later and has not read it"))
                break
    return found


def lost(view: View, sent: Sent, why: str) -> Anomaly:
    write = sent.write
    return Anomaly(
        name="lost-write",
        key=view.key,
        text=f"{write.value!r} was acknowledged at offset {write.offset}; {why}",
        offsets=(write.offset,),
        values=(write.value,),
        writers=(sent.operation,),
    )


class Passed:
    """The stretch of the log that one session has read."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.values = {read.value: None for read in session.reads()}
        offsets = [read.offset for read in session.reads()]
        self.first, self.last = min(offsets, default=0), max(offsets, default=-1)

    def should_have(self, sent: Sent) -> bool:
        return self.first <= sent.write.offset <= self.last and self.session.began_ms > sent.operation.ended_ms
