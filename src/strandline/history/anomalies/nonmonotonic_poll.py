"""nonmonotonic-poll, int-nonmonotonic-poll: a reader was given an offset again, or an earlier one."""

from strandline.history.anomaly import Anomaly
from strandline.history.view import View


def find(view: View) -> list[Anomaly]:
    found = []
    for session in view.sessions:
        last = -1
        for operation in session.polls:
            for index, read in enumerate(operation.reads):
                if read.offset <= last:
                    found.append(
                        Anomaly(
                            name="int-nonmonotonic-poll" if index else "nonmonotonic-poll",
                            key=view.key,
                            text=f"{session.process} got offset {read.offset} after {last}",
                            offsets=(last, read.offset),
                            values=(read.value,),
                            readers=(operation,),
                            proved_ms=operation.ended_ms,
                        )
                    )
                last = read.offset
    return found
