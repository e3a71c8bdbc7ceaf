"""poll-skip, int-poll-skip: a reader passed over something that stands between two values that it got.

Offsets need not be dense: transactions' markers, compaction and aborted records leave gaps. So what counts is whether
anybody has read something in the gap (the version order).
"""

from bisect import bisect_right

from strandline.history.anomaly import Anomaly
from strandline.history.operation import Operation, Read
from strandline.history.view import View


def find(view: View) -> list[Anomaly]:
    order = view.version_order
    found = []
    for session in view.sessions:
        last: tuple[Read, Operation] | None = None
        for operation, reads in session.polls:
            for index, read in enumerate(reads):
                if last is not None and read.offset > last[0].offset + 1:
                    after = bisect_right(order, last[0].offset)
                    if order[after] < read.offset:
                        name = "int-poll-skip" if index else "poll-skip"
                        found.append(skipped(view, name, order[after], last, (read, operation)))
                last = (read, operation)
    return found


def skipped(
    view: View, name: str, offset: int, before: tuple[Read, Operation], after: tuple[Read, Operation]
) -> Anomaly:
    values = tuple(view.values[offset])
    return Anomaly(
        name=name,
        key=view.key,
        text=(
            f"{after[1].process} got offset {after[0].offset} after {before[0].offset}, and at {offset} stands"
            f" {' and '.join(map(repr, values))}"
        ),
        offsets=(before[0].offset, offset, after[0].offset),
        values=values,
        writers=view.writers_of(*values),
        readers=(before[1], after[1]),
    )
