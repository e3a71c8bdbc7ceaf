"""duplicate: one value at several offsets. Values are unique, so it was written once and stands there twice."""

from strandline.history.anomaly import Anomaly
from strandline.history.view import View


def find(view: View) -> list[Anomaly]:
    return [
        Anomaly(
            name="duplicate",
            key=view.key,
            text=f"{value!r} stands at the offsets {', '.join(map(str, sorted(offsets)))}",
            offsets=tuple(sorted(offsets)),
            values=(value,),
            writers=view.writers_of(value),
        )
        for value, offsets in view.offsets.items()
        if len(offsets) > 1
    ]
