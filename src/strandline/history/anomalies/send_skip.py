"""int-send-skip: the writes of one operation do not stand at consecutive offsets: someone else's came between."""

from strandline.history.anomaly import Anomaly
from strandline.history.view import Sent, View


def find(view: View) -> list[Anomaly]:
    found = []
    before: Sent | None = None
    for sent in view.sent:
        if (
            before is not None
            and before.operation is sent.operation
            and sent.is_acknowledged
            and sent.write.offset > before.write.offset + 1 > 0
        ):
            found.append(
                Anomaly(
                    name="int-send-skip",
                    key=view.key,
                    text=(
                        f"{before.write.value!r} and {sent.write.value!r} were written at once, and stand at"
                        f" {before.write.offset} and {sent.write.offset}"
                    ),
                    offsets=(before.write.offset, sent.write.offset),
                    values=(before.write.value, sent.write.value),
                    writers=(sent.operation,),
                )
            )
        before = sent
    return found
