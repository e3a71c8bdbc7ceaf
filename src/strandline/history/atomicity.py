"""Transactions are read whole or not at all. Unlike the anomalies of one key, this is asked of all keys together.

- fractured-transaction: some of a transaction's values are there at the end and some are not. One whose commit was
  acknowledged must be there
- G1a: a read_committed reader has got something of a transaction that certainly was not committed
"""

from collections.abc import Iterable, Mapping

from strandline.history.anomaly import Anomaly
from strandline.history.operation import Key, Operation, Outcome, Write

Readers = dict[tuple[Key, bytes], list[Operation]]


def find(operations: Iterable[Operation], finals: Mapping[Key, str], excused: Iterable[Key] = ()) -> list[Anomaly]:
    """`finals`: who has read all of a key after everything else was over. `excused`: of these nothing is asked."""
    recorded = list(operations)
    asked = finals.keys() - set(excused)
    readers: Readers = {}
    for operation in recorded:
        if operation.is_read_committed:
            for read in operation.reads:
                readers.setdefault((read.key, read.value), []).append(operation)
    found = []
    for operation in recorded:
        if operation.transactional_id:
            found += judged(operation, [write for write in operation.writes if write.key in asked], readers, finals)
    return found


def judged(operation: Operation, writes: list[Write], readers: Readers, finals: Mapping[Key, str]) -> list[Anomaly]:
    if operation.outcome is Outcome.FAIL:
        seen = [write for write in writes if (write.key, write.value) in readers]
        return [anomaly("G1a", "was not committed, and was read", operation, seen, readers)] if seen else []
    there: list[Write] = []
    missing: list[Write] = []
    for write in writes:
        own = readers.get((write.key, write.value), ())
        (there if any(one.process == finals[write.key] for one in own) else missing).append(write)
    if not missing or (operation.outcome is Outcome.UNKNOWN and not there):
        return []
    text = f"is missing at the end, and {len(there)} other records of its transaction are there"
    return [anomaly("fractured-transaction", text, operation, missing, readers)]


def anomaly(name: str, text: str, operation: Operation, writes: list[Write], readers: Readers) -> Anomaly:
    first = writes[0]
    more = f" ({len(writes) - 1} more likewise)" if len(writes) > 1 else ""
    return Anomaly(
        name=name,
        key=first.key,
        text=f"{first.value!r} {text}{more}",
        offsets=(first.offset,),
        values=tuple(write.value for write in writes),
        writers=(operation,),
        readers=tuple(readers.get((first.key, first.value), ())),
        was_committed=True,
    )
