"""Moments: deaths, starts, cuts, reports on their machine's life line; faults and violations through all lanes."""

import re
from collections.abc import Iterator

from strandline.sim.diagram.element import at, element, escaped, hidden, hint
from strandline.sim.diagram.frame import Frame
from strandline.sim.diagram.layout import CLUSTER, LETTER, LIFE, NODE, TOP, Lane, spread
from strandline.sim.diagram.spans import DEATHS
from strandline.sim.runs.story import flat
from strandline.sim.world.trace import Kind, Moment

LESSER = (Kind.REPORT, Kind.CLIENT)
LESSER_MAX = 200  # of them one lane shows, the latest
FAULT_MAX, HALT_MAX, VIOLATION_MAX = 60, 44, 150  # letters


def marks(frame: Frame, lane: Lane) -> Iterator[str]:
    if lane.role == CLUSTER:
        yield from faults(frame)
        return
    found = [m for m in frame.trace.moments if m.machine == lane.name and frame.is_drawn(m.at_ms) and shape_of(m)]
    lesser = [at for at, m in enumerate(found) if m.kind in LESSER][:-LESSER_MAX]
    if lesser:
        found = [m for at, m in enumerate(found) if m.kind not in LESSER or at > lesser[-1]]
    wide = [len(words_beside(m)) * LETTER + 8 if words_beside(m) else float("-inf") for m in found]
    rows = spread([(frame.x(m.at_ms), width) for m, width in zip(found, wide, strict=True)], 1)
    for m, row in zip(found, rows, strict=True):
        yield mark(frame, m, LIFE[lane.role], has_room=row >= 0)


def mark(frame: Frame, m: Moment, y: float, *, has_room: bool) -> str:
    text = words_beside(m)
    label = element("text", escaped(text), class_=f"label {tone(m)}", x=7, y=13, display=hidden(not has_room))
    return (
        element(
            "g",
            shape_of(m),
            label if text else "",
            hint(f"{m.at_ms:,} ms · {m.machine} · {m.kind}: {m.text}"),
            class_="at",
            data_t=m.at_ms,
            data_who=m.machine,
            data_partition=m.partition or None,
            display=hidden(m.partition and m.partition not in frame.layout.shown),
            transform=at(frame.x(m.at_ms), y),
        )
        + "\n"
    )


def shape_of(m: Moment) -> str:
    """Around its point."""
    match m.kind:
        case Kind.KILLED:
            return element("path", class_="death", d="M-5 -5L5 5M-5 5L5 -5")
        case Kind.POWER_LOST:
            return element("path", class_="death", d="M2 -8L-3 0H3L-2 8")
        case Kind.HALTED:
            return element("path", class_="death", d="M-4 -4H4V4H-4Z")
        case Kind.STARTED | Kind.RESUMED:
            return element("path", class_="birth", d="M-3 -6L6 0L-3 6Z")
        case Kind.TRUNCATED:
            return element("path", class_="cut", d="M0 -9V9M-4 -9H4M-4 9H4")
        case Kind.REPORT:
            is_calm = m.text.startswith(("info", "debug"))
            return element("rect", class_="report" if is_calm else "report warning", x=-1, y=-6, width=2, height=5)
        case Kind.CLIENT:
            return element("circle", class_="dot refused" if "refused" in m.text else "dot", r=2.2, cy=0.5)
        case Kind.HEALED:
            return element("circle", class_="healed", r=4)
        case _:
            return ""


def words_beside(m: Moment) -> str:
    match m.kind:
        case Kind.KILLED | Kind.POWER_LOST:
            return m.kind
        case Kind.STARTED | Kind.RESUMED:
            return flat(m.text)
        case Kind.HALTED | Kind.TRUNCATED | Kind.HEALED:
            return flat(m.text)[:HALT_MAX]
        case _:
            return ""


def tone(m: Moment) -> str:
    return "death" if m.kind in DEATHS else "cut" if m.kind is Kind.TRUNCATED else "small"


# --- through all lanes


def faults(frame: Frame) -> Iterator[str]:
    found = [
        m
        for m in frame.trace.moments
        if not m.machine and m.kind in (Kind.FAULT, Kind.HEALED) and frame.is_drawn(m.at_ms)
    ]
    texts = [flat(m.text)[:FAULT_MAX] for m in found]
    rows = spread([(frame.x(m.at_ms), len(text) * LETTER + 12) for m, text in zip(found, texts, strict=True)], 2)
    for m, text, row in zip(found, texts, rows, strict=True):
        name = "fault" if m.kind is Kind.FAULT else "healed"
        y = 11 + 13 * max(0, row)
        yield (
            element(
                "g",
                element("line", class_=f"{name}-line", x1=0, x2=0, y1=4, y2=frame.height),
                element("path", class_=name, d="M-4 2H4L0 9Z"),
                element("text", escaped(text), class_=f"label {name}", x=6, y=y, display=hidden(row < 0)),
                hint(f"{m.at_ms:,} ms · {m.text}"),
                class_="at",
                data_t=m.at_ms,
                data_who="",
                transform=at(frame.x(m.at_ms), 0),
            )
            + "\n"
        )


def violations(frame: Frame) -> Iterator[str]:
    for m in frame.trace.moments:
        if m.kind is not Kind.VIOLATION or not frame.is_drawn(m.at_ms):
            continue
        x = frame.x(m.at_ms)
        is_right = x > frame.layout.width / 2
        yield (
            element(
                "g",
                element("line", class_="violation-line", x1=0, x2=0, y1=16, y2=frame.height),
                element(
                    "text",
                    escaped(flat(m.text)[:VIOLATION_MAX]),
                    class_="violation",
                    x=-6 if is_right else 6,
                    y=TOP - 1,
                    text_anchor="end" if is_right else "start",
                ),
                *(ring(frame, lane) for lane in frame.layout.lanes if is_named(lane, m)),
                hint(f"{m.at_ms:,} ms · {m.text}"),
                class_="at violation",
                data_t=m.at_ms,
                data_who=m.machine,
                transform=at(x, 0),
            )
            + "\n"
        )


def is_named(lane: Lane, m: Moment) -> bool:
    named = re.search(rf"(?<![\w-]){re.escape(lane.name)}(?![\w-])", m.text)
    return lane.role == NODE and (lane.name == m.machine or named is not None)


def ring(frame: Frame, lane: Lane) -> str:
    number = frame.number[lane.name]
    return element("circle", class_="violation-ring", cx=0, cy=frame.life_y(lane.name), r=7, data_lane=number)
