"""nonmonotonic-send, int-nonmonotonic-send: a later acknowledged write of one process stands before an earlier one.

Later by its beginning and end: of operations that overlap (several batches in flight) nothing is said.
"""

from strandline.history.anomaly import Anomaly
from strandline.history.operation import Operation
from strandline.history.view import View


def find(view: View) -> list[Anomaly]:
    found = []
    last: dict[str, tuple[int, bytes, Operation]] = {}  # by process
    for sent in view.sent:
        operation, write = sent.operation, sent.write
        if not sent.is_acknowledged or write.offset < 0:
            continue
        known = last.get(operation.process)
        if known is not None and write.offset <= known[0]:
            is_internal = known[2] is operation
            if is_internal or operation.began_ms >= known[2].ended_ms:
                found.append(
                    Anomaly(
                        name="int-nonmonotonic-send" if is_internal else "nonmonotonic-send",
                        key=view.key,
                        text=(
                            f"{operation.process} wrote {write.value!r} after {known[1]!r}, and they stand at"
                            f" {write.offset} and {known[0]}"
                        ),
                        offsets=(known[0], write.offset),
                        values=(known[1], write.value),
                        writers=(known[2], operation),
                    )
                )
        last[operation.process] = (write.offset, write.value, operation)
    return found
