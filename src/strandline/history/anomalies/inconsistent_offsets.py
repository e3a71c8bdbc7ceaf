"""inconsistent-offsets: one offset with several values, as read, or as acknowledged and read."""

from strandline.history.anomaly import Anomaly
from strandline.history.view import View


def find(view: View) -> list[Anomaly]:
    clashes: dict[int, dict[bytes, None]] = {offset: dict.fromkeys(view.values_at(offset)) for offset in view.rivals}
    acknowledged: dict[int, bytes] = {}
    for sent in view.sent:
        offset, value = sent.write.offset, sent.write.value
        if not sent.is_acknowledged or offset < 0:
            continue
        for other in (view.values.get(offset, value), acknowledged.setdefault(offset, value)):
            if other != value:
                clashes.setdefault(offset, {}).update({other: None, value: None})
    return [inconsistent(view, offset, tuple(values)) for offset, values in clashes.items()]


def inconsistent(view: View, offset: int, values: tuple[bytes, ...]) -> Anomaly:
    writers = view.writers_of(*values)
    readers = tuple(view.reader_of(offset, value) for value in view.values_at(offset))
    evidence = readers if len(readers) == len(values) else (*readers, *writers)
    return Anomaly(
        name="inconsistent-offsets",
        key=view.key,
        text=f"offset {offset} holds {' and '.join(map(repr, values))}",
        offsets=(offset,),
        values=values,
        writers=writers,
        readers=readers,
        was_committed=offset in view.rivals,
        proved_ms=max(operation.ended_ms for operation in evidence),
    )
