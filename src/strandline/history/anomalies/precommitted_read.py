"""precommitted-read: a transaction reads what it wrote itself, before it is committed."""

from strandline.history.anomaly import Anomaly
from strandline.history.view import View


def find(view: View) -> list[Anomaly]:
    found = []
    for session in view.sessions:
        for operation in session.polls:
            if not operation.transactional_id:
                continue
            own = {write.value: None for write in operation.writes}
            found += [
                Anomaly(
                    name="precommitted-read",
                    key=view.key,
                    text=f"{operation.process} read {read.value!r}, which it wrote itself and has not committed",
                    offsets=(read.offset,),
                    values=(read.value,),
                    writers=(operation,),
                    readers=(operation,),
                    was_committed=operation.is_read_committed,
                    proved_ms=operation.ended_ms,
                )
                for read in operation.reads
                if read.value in own
            ]
    return found
