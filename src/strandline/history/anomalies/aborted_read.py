"""G1a, aborted read: somebody read a value that certainly was not written: its writer was refused, or aborted."""

from strandline.history.anomaly import Anomaly
from strandline.history.operation import Outcome
from strandline.history.view import View


def find(view: View) -> list[Anomaly]:
    return [
        Anomaly(
            name="G1a",
            key=view.key,
            text=f"{sent.write.value!r} was refused, and stands at {list(view.offsets[sent.write.value])}",
            offsets=tuple(view.offsets[sent.write.value]),
            values=(sent.write.value,),
            writers=(sent.operation,),
        )
        for sent in view.sent
        if sent.operation.outcome is Outcome.FAIL and view.is_read(sent.write.value)
    ]
