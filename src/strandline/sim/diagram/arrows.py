"""Messages: each as an arrow; from afar many alike ones as a bar below the sender's life line."""

from collections.abc import Iterator

from strandline.sim.diagram.element import element, hint
from strandline.sim.diagram.frame import Frame
from strandline.sim.diagram.messages import LABELS, Ribbon, kind_of
from strandline.sim.world.trace import Passage

# How far below the sender's life line a ribbon of this kind runs.
BESIDE = {"fetch": 5, "broker": 8, "produce": 5, "read": 5, "group": 8, "other": 8}
LOST_AT = 0.6  # of the way
LATE_MS = 150  # on the way, as through a cut: many such at once would cover everything


def heads() -> Iterator[str]:
    for kind in LABELS:
        yield element(
            "marker",
            element("path", class_=f"m {kind}", d="M1 1L8 4L1 7"),
            id=f"head-{kind}",
            viewBox="0 0 8 8",
            refX=8,
            refY=4,
            markerWidth=6,
            markerHeight=6,
            markerUnits="userSpaceOnUse",
            orient="auto",
        )


def arrows(frame: Frame, *, with_hints: bool) -> Iterator[str]:
    """Hints are half of what they weigh, and the page's script makes its own."""
    chosen = frame.chosen
    yield '<g class="ribbon-layer">\n'
    for one in chosen.ribbons:
        yield ribbon(frame, one)
    for name, is_alone in (("fine", False), ("always", True)):
        yield f'</g>\n<g class="{name}">\n'
        for passage, alone in zip(chosen.arrows, chosen.alone, strict=True):
            if alone == is_alone:
                yield arrow(frame, passage, with_hints=with_hints) + "\n"
    yield "</g>\n"


def arrow(frame: Frame, p: Passage, *, with_hints: bool) -> str:
    kind = kind_of(p, frame.nodes)
    name = f"m {kind} answer" if p.is_answer else f"m {kind}"
    x, y1, y2 = frame.x(p.sent_ms), frame.life_y(p.source), frame.life_y(p.target)
    if p.arrived_ms - p.sent_ms >= LATE_MS:
        name += " late"
    lanes = f"{frame.number[p.source]} {frame.number[p.target]}"
    about = numbers_of(frame, p) if p.partitions else None
    what = f"{p.name}{' answer' if p.is_answer else ''} {p.source} → {p.target}"
    if p.arrived_ms < 0:
        y = round(y1 + (y2 - y1) * LOST_AT, 1)
        path = f"M{x} {y1}V{y}M{x - 3} {y - 3}l6 6M{x + 3} {y - 3}l-6 6"
        text = hint(f"{what} · sent at {p.sent_ms:,} ms and lost")
        return element("path", text, class_=f"{name} lost", data_t=p.sent_ms, data_l=lanes, data_p=about, d=path)
    text = hint(" · ".join((what, f"{p.sent_ms:,} to {p.arrived_ms:,} ms", *p.partitions)))
    return element(
        "line",
        *([text] if with_hints else []),
        class_=name,
        data_n=None if with_hints else p.name,
        data_t=f"{p.sent_ms} {p.arrived_ms}",
        data_l=lanes,
        data_p=about,
        x1=x,
        y1=y1,
        x2=frame.x(p.arrived_ms),
        y2=y2,
    )


def numbers_of(frame: Frame, p: Passage) -> str:
    """The partitions that it names, for the page's filter."""
    return " ".join(str(frame.partitions.index(one)) for one in p.partitions if one in frame.partitions) or "-1"


def ribbon(frame: Frame, one: Ribbon) -> str:
    a, b = one.first, one.last
    kind = kind_of(a, frame.nodes)
    y1, y2 = frame.life_y(a.source) + BESIDE[kind], frame.life_y(a.target)
    times = (a.sent_ms, b.sent_ms, b.arrived_ms, a.arrived_ms)
    x = [frame.x(time) for time in times]
    return (
        element(
            "g",
            element("path", class_="ends", d=f"M{x[3]} {y2}L{x[0]} {y1}H{x[1]}L{x[2]} {y2}"),
            element("path", class_="bar", d=f"M{x[0]} {y1}H{x[1]}"),
            hint(f"{one.count} × {a.name} {a.source} → {a.target} · {a.sent_ms:,} to {b.arrived_ms:,} ms"),
            class_=f"m ribbon {kind}",
            data_t=" ".join(map(str, times)),
            data_l=f"{frame.number[a.source]} {frame.number[a.target]}",
            data_beside=BESIDE[kind],
        )
        + "\n"
    )
