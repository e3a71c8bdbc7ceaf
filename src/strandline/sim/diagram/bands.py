"""What lasts: lives, pauses, controllers, leaderships with their high watermarks, states of partitions."""

import re
from collections.abc import Iterator, Sequence

from strandline.sim.diagram.element import at, element, escaped, hidden, hint, opened
from strandline.sim.diagram.frame import Frame
from strandline.sim.diagram.layout import CLIENT, CLUSTER, LEFT, LETTER, LIFE, NODE, TRACK, Lane, spread
from strandline.sim.diagram.spans import Span, Step, controllers, lives, pauses, states, steps

COLOURS = 8


def bands(frame: Frame, lane: Lane) -> Iterator[str]:
    if lane.role == CLUSTER:
        for partition, top in frame.tracks(lane):
            yield from track(partition, top, states_of(frame, partition))
    elif lane.role == NODE:
        y = LIFE[NODE]
        for span in controllers(frame.trace, frame.end):
            if span.machine == lane.name:
                epoch = re.search(r"epoch (\d+)", span.label)
                label = f"controller, epoch {epoch[1]}" if epoch else "controller"
                yield from bar(frame, span, "band controller", y - 20, 12, label, f"epoch {epoch[1]}" if epoch else "")
        for span in lives(frame.trace, lane.name, frame.end):
            yield from bar(frame, span, "life", y - 2, 4)
        for span in pauses(frame.trace, lane.name, frame.end):
            yield from bar(frame, span, "pause", y - 5, 10, "stands still")
        for partition, top in frame.tracks(lane):
            yield from track(partition, top, leaderships_of(frame, partition, lane.name))
    else:
        yield element("rect", class_="life", x=LEFT, y=LIFE[CLIENT], width=frame.layout.width - LEFT, height=1)


def track(partition: str, y: int | None, content: Iterator[str]) -> Iterator[str]:
    yield opened("g", class_="track", data_partition=partition, transform=at(0, y or 0), display=hidden(y is None))
    yield from content
    yield "</g>\n"


def rect(frame: Frame, start_ms: int, end_ms: int, name: str, y: float, height: float) -> str:
    x = frame.x(start_ms)
    wide = round(max(1.0, frame.x(end_ms) - x), 1)
    return element("rect", class_=name, data_t=f"{start_ms} {end_ms}", x=x, y=y, width=wide, height=height)


def bar(
    frame: Frame, span: Span, name: str, y: float, height: float, label: str = "", short: str = ""
) -> Iterator[str]:
    """A rectangle with words that stay in sight as long as it does; fewer of them where there is little room."""
    if not frame.is_drawn(span.start_ms, span.end_ms):
        return
    yield f"<g>{rect(frame, span.start_ms, span.end_ms, name, y, height)}"
    if label:
        left = max(frame.x(span.start_ms), LEFT)
        room = min(frame.x(span.end_ms), frame.layout.width) - left
        fits = next((words for words in (label, short) if words and room >= len(words) * LETTER + 6), "")
        yield element(
            "text",
            escaped(fits or short or label),
            class_="within small",
            data_full=label,
            data_short=short or None,
            data_t=f"{span.start_ms} {span.end_ms}",
            x=left + 4,
            y=y + height / 2 + 3.5,
            display=hidden(not fits),
        )
    yield hint(f"{span.machine} {span.text} · {span.start_ms:,} to {span.end_ms:,} ms") + "</g>\n"


def states_of(frame: Frame, partition: str) -> Iterator[str]:
    for span in states(frame.trace, partition, frame.end):
        name = "band state none" if "leader -1" in span.label else "band state"
        isr = re.search(r"\[.*\]", span.label)
        label = span.label.replace("leader -1", "no leader")
        yield from bar(frame, span, name, 1, TRACK - 4, label, isr[0] if isr else "")


# --- leaderships


def leaderships_of(frame: Frame, partition: str, machine: str) -> Iterator[str]:
    colour = f"p{frame.partitions.index(partition) % COLOURS}"
    low, high = range_of(frame, partition)
    for span in frame.leaderships[partition]:
        if span.machine != machine or not frame.is_drawn(span.start_ms, span.end_ms):
            continue
        yield from bar(frame, span, f"band {colour}", 1, TRACK - 4)
        found = steps(frame.trace, partition, span)
        if not found:
            continue
        path = ""
        for step in found:
            part = min(1.0, max(0.0, (step.high_watermark - low) / max(1, high - low)))
            y = round(TRACK - 5 - (TRACK - 8) * part, 1)
            path += f"H{frame.x(step.at_ms)}V{y}" if path else f"M{frame.x(step.at_ms)} {y}"
        points = " ".join(f"{step.at_ms},{step.high_watermark}" for step in found)
        path += f"H{frame.x(span.end_ms)}"
        yield element("path", class_=f"steps {colour}", data_points=points, data_end=span.end_ms, d=path)
        yield element("g", *numbers(frame, span, found), " ", class_="marks-of-steps", data_label=span.label) + "\n"


def range_of(frame: Frame, partition: str) -> tuple[int, int]:
    """Of the high watermarks that are in sight, the ones from before the window included: the axis of the steps."""
    start, end = frame.layout.start_ms, frame.layout.end_ms
    seen: list[int] = []
    for span in frame.leaderships[partition]:
        if span.start_ms <= end and span.end_ms >= start:
            found = steps(frame.trace, partition, span)
            seen += [step.high_watermark for step in found if start <= step.at_ms <= end]
            seen += [step.high_watermark for step in found if step.at_ms < start][-1:]
    return min(seen, default=0), max(seen, default=0)


def numbers(frame: Frame, span: Span, found: Sequence[Step]) -> Iterator[str]:
    """`epoch 3 · 17`, then the high watermark wherever there is room for it."""
    texts: list[tuple[float, str]] = []
    for number, step in enumerate(found):
        until = found[number + 1].at_ms if number + 1 < len(found) else span.end_ms
        if step.at_ms > frame.layout.end_ms or until < frame.layout.start_ms:
            continue
        text = str(step.high_watermark) if texts else f"{span.label} · {step.high_watermark}"
        texts.append((max(frame.x(step.at_ms), LEFT), text))
    rows = spread([(x, len(text) * LETTER + 10) for x, text in texts], 1)
    for (x, text), row in zip(texts, rows, strict=True):
        if row == 0 and x + len(text) * LETTER <= frame.x(span.end_ms):
            yield element("text", escaped(text), class_="small", x=x + 3, y=12)
