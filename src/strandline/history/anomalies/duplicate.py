"""duplicate: one value at several offsets. Values are unique, so it was written once and stands there twice.

Or it stands elsewhere than its acknowledgement says.
"""

from strandline.history.anomaly import Anomaly
from strandline.history.view import View


def find(view: View) -> list[Anomaly]:
    found = [duplicate(view, value) for value in view.copies]
    for sent in view.sent:
        value, offset = sent.write.value, sent.write.offset
        if sent.is_acknowledged and offset >= 0 and value not in view.copies:
            place = view.offsets.get(value, offset)
            if place != offset:
                found.append(misplaced(view, value, offset, place))
    return found


def duplicate(view: View, value: bytes) -> Anomaly:
    offsets = tuple(sorted(view.offsets_of(value)))
    readers = tuple(view.reader_of(offset, value) for offset in offsets)
    return Anomaly(
        name="duplicate",
        key=view.key,
        text=f"{value!r} stands at the offsets {', '.join(map(str, offsets))}",
        offsets=offsets,
        values=(value,),
        writers=view.writers_of(value),
        readers=readers,
        proved_ms=max(reader.ended_ms for reader in readers),
    )


def misplaced(view: View, value: bytes, offset: int, place: int) -> Anomaly:
    writers, reader = view.writers_of(value), view.reader_of(place, value)
    return Anomaly(
        name="duplicate",
        key=view.key,
        text=f"{value!r} was acknowledged at offset {offset}, and stands at {place}",
        offsets=tuple(sorted((offset, place))),
        values=(value,),
        writers=writers,
        readers=(reader,),
        proved_ms=max(operation.ended_ms for operation in (*writers, reader)),
    )
