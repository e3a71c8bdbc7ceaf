"""inconsistent-offsets: one offset with several values, as read, or as acknowledged and read."""

from strandline.history.anomaly import Anomaly
from strandline.history.view import View


def find(view: View) -> list[Anomaly]:
    seen: dict[int, dict[bytes, None]] = {offset: dict(values) for offset, values in view.values.items()}
    for sent in view.sent:
        if sent.is_acknowledged and sent.write.offset >= 0:
            seen.setdefault(sent.write.offset, {})[sent.write.value] = None
    return [
        Anomaly(
            name="inconsistent-offsets",
            key=view.key,
            text=f"offset {offset} holds {' and '.join(map(repr, values))}",
            offsets=(offset,),
            values=tuple(values),
            writers=view.writers_of(*values),
        )
        for offset, values in seen.items()
        if len(values) > 1
    ]
