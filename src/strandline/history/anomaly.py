"""One thing that is wrong in a history, with what proves it."""

from strandline.base.time import NEVER
from strandline.base.value import Value
from strandline.history.operation import Key, Operation

EVIDENCE_MAX = 8  # operations that are shown; the text says how many more there are


class Anomaly(Value, frozen=True):
    """`name` is Jepsen's. `writers` made the values concerned, as far as the history shows; `readers` got them."""

    name: str
    key: Key
    text: str
    offsets: tuple[int, ...] = ()
    values: tuple[bytes, ...] = ()
    writers: tuple[Operation, ...] = ()
    readers: tuple[Operation, ...] = ()
    # What went wrong had been shown to a reader as committed. How it was written is not an excuse then.
    was_committed: bool = False
    proved_ms: int = NEVER  # when all of the evidence was there; NEVER: not before the end


def distinct(*operations: Operation) -> tuple[Operation, ...]:
    """By identity: comparing operations means comparing all that they read."""
    return tuple({id(operation): operation for operation in operations}.values())


def described(anomaly: Anomaly) -> str:
    """For people: keys, offsets, values, operations."""
    lines = [f"{anomaly.name} in {anomaly.key}: {anomaly.text}"]
    for what, operations in (("written by", anomaly.writers), ("read by", anomaly.readers)):
        lines += [f"  {what} {shown(operation)}" for operation in operations[:EVIDENCE_MAX]]
        if len(operations) > EVIDENCE_MAX:
            lines.append(f"  and {len(operations) - EVIDENCE_MAX} more")
    return "\n".join(lines)


def shown(operation: Operation) -> str:
    span = f"{operation.process} at {operation.began_ms}..{operation.ended_ms} ms, {operation.outcome}"
    if operation.writes:
        writes = operation.writes[:EVIDENCE_MAX]
        what = ", ".join(f"{write.value!r} at {write.offset}" for write in writes)
        if len(operation.writes) > EVIDENCE_MAX:
            what += f" and {len(operation.writes) - EVIDENCE_MAX} more"
        return f"{span}, acks={operation.acks}: {what}{f' ({operation.error})' if operation.error else ''}"
    if operation.reads:
        first, last = operation.reads[0], operation.reads[-1]
        return f"{span}: offsets {first.offset} to {last.offset}"
    return span
