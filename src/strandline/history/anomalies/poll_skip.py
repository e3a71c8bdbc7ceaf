"""poll-skip, int-poll-skip: a reader passed over something that stands between two values that it got.

Offsets need not be dense: transactions' markers, compaction and aborted records leave gaps. So what counts is whether
anybody has read something in the gap (the version order), that was not deleted since, and that this reader's isolation
level shows.
"""

from bisect import bisect_left

from strandline.history.anomaly import Anomaly, distinct
from strandline.history.operation import Operation
from strandline.history.view import View


def find(view: View) -> list[Anomaly]:
    found = []
    for session in view.sessions:
        last, before = -1, session.polls[0]
        for operation in session.polls:
            order = view.committed_order if operation.is_read_committed else view.version_order
            for index, read in enumerate(operation.reads):
                if read.offset > last + 1 and last >= 0:
                    after = bisect_left(order, max(last + 1, view.trimmed))
                    if after < len(order) and order[after] < read.offset:
                        name = "int-poll-skip" if index else "poll-skip"
                        found.append(skipped(view, name, (last, order[after], read.offset), before, operation))
                last, before = read.offset, operation
    return found


def skipped(view: View, name: str, offsets: tuple[int, int, int], before: Operation, after: Operation) -> Anomaly:
    first, between, last = offsets
    values = view.values_at(between)
    return Anomaly(
        name=name,
        key=view.key,
        text=(
            f"{after.process} got offset {last} after {first}, and at {between} stands"
            f" {' and '.join(map(repr, values))}"
        ),
        offsets=offsets,
        values=values,
        writers=view.writers_of(*values),
        readers=distinct(before, after, view.readers[between]),
        proved_ms=max(after.ended_ms, view.readers[between].ended_ms),
    )
