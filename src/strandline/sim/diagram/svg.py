"""The picture: axis, lanes, what lasts, messages, moments.

Every element that belongs to a time says so (`data-t`), and so does every one that belongs to a lane (`data-lane`,
`data-l`): thus the page's script can put it where it belongs in another view.
"""

import importlib.resources
from collections.abc import Callable, Iterator, Sequence

from strandline.sim.diagram.arrows import arrows, heads
from strandline.sim.diagram.bands import bands, rect
from strandline.sim.diagram.element import at, element, escaped, hidden, hint, opened
from strandline.sim.diagram.frame import Frame
from strandline.sim.diagram.layout import HEAD, LEFT, LIFE, NEAR, RIGHT, TOP, Lane
from strandline.sim.diagram.marks import marks, violations
from strandline.sim.diagram.messages import choose
from strandline.sim.runs.story import machines
from strandline.sim.world.trace import Trace

NAME_MAX = 15  # letters of a partition's name beside its track


def svg(trace: Trace, window: tuple[int, int], partitions: Sequence[str] = ()) -> str:
    """One picture of one span of time, to be shown anywhere."""
    nodes, _ = machines(trace)
    chosen = choose(trace, nodes, *window, partitions)
    return "".join(document(Frame(trace, window, partitions, chosen, window), is_alone=True))


def style() -> str:
    return importlib.resources.files(__package__).joinpath("picture.css").read_text("utf-8")


def document(frame: Frame, *, is_alone: bool) -> Iterator[str]:
    layout, high = frame.layout, frame.height
    room = layout.width - LEFT - RIGHT
    yield opened(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        class_="run near" if room / max(1, layout.end_ms - layout.start_ms) >= NEAR else "run far",
        width=layout.width,
        height=high,
        viewBox=f"0 0 {layout.width} {high}",
        data_start=layout.start_ms,
        data_end=layout.end_ms,
    )
    if is_alone:
        yield f"<style>\n{style()}</style>\n"
    clip = element("clipPath", element("rect", x=LEFT, y=0, width=room, height=high), id="room")
    yield element("defs", clip, *heads()) + "\n"
    yield from grounds(frame)
    yield from axis(frame)
    yield '<g clip-path="url(#room)">\n'
    yield from without_messages(frame)
    yield from lanes(frame, bands)
    yield from arrows(frame, with_hints=is_alone)
    yield from lanes(frame, marks)
    yield from violations(frame)
    yield "</g>\n"
    yield from names(frame)
    yield "</svg>\n"


def grounds(frame: Frame) -> Iterator[str]:
    for number, lane, top in frame.lanes():
        name = "lane-ground odd" if number % 2 else "lane-ground"
        high = frame.layout.height_of(lane)
        yield element("rect", class_=name, data_lane=number, x=0, y=top, width=frame.layout.width, height=high) + "\n"


def names(frame: Frame) -> Iterator[str]:
    for number, lane, top in frame.lanes():
        yield opened("g", class_=f"lane {lane.role}", data_lane=number, transform=at(0, top))
        yield element("text", escaped(lane.name), hint(lane.name), class_="name", x=8, y=LIFE[lane.role] + 4)
        for partition, y in frame.tracks(lane):
            is_short = len(partition) <= NAME_MAX
            label = partition if is_short else f"{partition[: NAME_MAX - 9]}…{partition[-8:]}"
            yield element(
                "g",
                element("text", escaped(label), hint(partition), class_="small", x=14, y=13),
                class_="track",
                data_partition=partition,
                transform=at(0, y or 0),
                display=hidden(y is None),
            )
        yield "</g>\n"


def axis(frame: Frame) -> Iterator[str]:
    yield '<g class="axis">'
    for tick in frame.layout.ticks():
        x = frame.x(tick)
        yield element("line", x1=x, x2=x, y1=18, y2=frame.height)
        yield element("text", f"{tick:,} ms", x=x, y=13, text_anchor="middle")
    yield "</g>\n"


def without_messages(frame: Frame) -> Iterator[str]:
    """A shade where there were too many of them."""
    start, end = frame.drawn[0], frame.chosen.from_ms
    if end > start:
        shade = rect(frame, start, end, "shade", TOP, frame.height - TOP)
        yield element("g", shade, hint("messages of this time are left out")) + "\n"


def lanes(frame: Frame, content: Callable[[Frame, Lane], Iterator[str]]) -> Iterator[str]:
    for number, lane, top in frame.lanes():
        yield opened(
            "g",
            class_=f"lane {lane.role}",
            data_lane=number,
            data_head=HEAD[lane.role],
            data_life=LIFE[lane.role],
            transform=at(0, top),
        )
        yield from content(frame, lane)
        yield "</g>\n"
