"""One page for one failed run: verdict, how to replay it, picture, story. It needs nothing but a browser."""

import importlib.resources
import re
from collections.abc import Sequence
from pathlib import Path

from strandline.sim.diagram.element import element, escaped
from strandline.sim.diagram.frame import Frame
from strandline.sim.diagram.layout import LEFT, LETTER, NEAR, RIGHT, TOP, TRACK
from strandline.sim.diagram.marks import LESSER_MAX
from strandline.sim.diagram.messages import LABELS, Chosen, choose
from strandline.sim.diagram.spans import DEATHS, lives, pauses
from strandline.sim.diagram.svg import document, style, svg
from strandline.sim.runs.story import (
    CLUSTER,
    StoryLines,
    concerned,
    counted,
    end_of,
    machines,
    story_lines,
    summary,
    violated_at,
    words,
)
from strandline.sim.world.trace import Kind, Trace

WINDOW_MS = 2_500
ROWS = 1_500
TEXT_MAX = 800  # of one of them
OVERVIEW_WIDTH = 1500


def write_page(
    path: str,
    trace: Trace,
    *,
    title: str,
    verdict_text: str,
    replay: str,
    partitions: Sequence[str] = (),
    window_ms: int | None = None,
) -> None:
    """The page at `path`, and its picture alone beside it, as .svg."""
    chosen = concerned(trace, partitions, verdict_text)
    window = window_of(trace, window_ms or WINDOW_MS)
    html = page(trace, window, title=title, verdict_text=verdict_text, replay=replay, partitions=chosen)
    Path(path).write_text(html, "utf-8")
    Path(path).with_suffix(".svg").write_text(svg(trace, window, chosen), "utf-8")


def window_of(trace: Trace, window_ms: int) -> tuple[int, int]:
    """The last of it, with a little room behind what failed."""
    at = violated_at(trace)
    end = end_of(trace) if at is None else at
    return max(0, end - window_ms), end + max(5, window_ms // 60)


def page(
    trace: Trace, window: tuple[int, int], *, title: str, verdict_text: str, replay: str, partitions: Sequence[str]
) -> str:
    end = end_of(trace)
    nodes, _ = machines(trace)
    chosen = choose(trace, nodes, 0, max(end, window[1]))
    frame = Frame(trace, window, partitions, chosen, (0, max(end, window[1])))
    lines = story_lines(trace, (), ROWS)
    values = {
        "title": escaped(title),
        "check": escaped(verdict_text.partition("\n")[0]),
        "evidence": escaped(verdict_text.partition("\n")[2]),
        "verdict_class": "fine" if violated_at(trace) is None and "nothing failed" in verdict_text else "failed",
        "replay": escaped(replay),
        "facts": escaped(summary(trace)),
        "kinds": kind_boxes(),
        "partitions": partition_boxes(frame),
        "overview": overview(trace),
        "svg": "".join(document(frame, is_alone=False)),
        "left_out": escaped(left_out(chosen)),
        "story_left_out": escaped("left out: " + counted(lines.left_out)) if lines.left_out else "",
        "rows": rows(lines),
        "picture_style": style(),
        "page_style": template("page.css"),
        "script": filled(template("page.js"), constants(end)),
    }
    return filled(template("page.html"), values)


def constants(end_ms: int) -> dict[str, str]:
    found = {"left": LEFT, "right": RIGHT, "top": TOP, "track": TRACK, "letter": LETTER, "near": NEAR, "end": end_ms}
    return {name: str(value) for name, value in found.items()}


def template(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text("utf-8")


def filled(text: str, values: dict[str, str]) -> str:
    """In one pass: what is put in is not looked at again."""
    return re.sub(r"@([a-z_]+)@", lambda found: values[found[1]], text)


# --- pieces


def kind_boxes() -> str:
    boxes = []
    for kind, label in LABELS.items():
        sample = element("svg", element("path", class_=f"m {kind}", d="M1 4H21"), class_="run", width=22, height=8)
        box = f'<input type="checkbox" data-kind="{kind}" checked>'
        boxes.append(f"<label>{box}{sample} {escaped(label)}</label>")
    boxes.append('<label><input type="checkbox" data-kind="answer" checked> answers</label>')
    return "".join(boxes)


def partition_boxes(frame: Frame) -> str:
    return "".join(
        f'<label><input type="checkbox" data-partition="{escaped(partition)}"'
        f"{' checked' if partition in frame.layout.shown else ''}> {escaped(partition)}</label>"
        for partition in frame.partitions
    )


def left_out(chosen: Chosen) -> str:
    missing = [f"{count:,} {what}" for what, count in chosen.left_out]
    if chosen.from_ms:
        missing.append(f"no messages before {chosen.from_ms:,} ms (the grey part)")
    begun = (
        f"{len(chosen.arrows):,} messages are in the picture. From afar, a bar below a life line stands for several"
        " alike requests; zoom in to see each of them, and the answers to them."
    )
    begun += f" Of reports and of operations of clients every machine shows its latest {LESSER_MAX}."
    return f"{begun} Left out: {'; '.join(missing)}." if missing else begun


def rows(lines: StoryLines) -> str:
    return "\n".join(
        f'<tr class="{escaped(line.kind.replace(" ", "-"))}" data-t="{line.at_ms}" data-until="{line.until_ms}"'
        f' data-who="{escaped(line.machine)}" data-p="{escaped(line.partition)}"><td>{line.at_ms:,}</td>'
        f"<td>{escaped(line.machine or CLUSTER)}</td><td>{escaped(line.kind)}</td>"
        f"<td>{escaped(words(line)[:TEXT_MAX])}</td></tr>"
        for line in lines.lines
    )


def overview(trace: Trace) -> str:
    """The whole run in a strip: who was alive when, faults, the violation."""
    end = max(1, end_of(trace))
    nodes, _ = machines(trace)
    scale = OVERVIEW_WIDTH / end
    high = 8 * len(nodes) + 14
    size = f'width="100%" height="{high}" viewBox="0 0 {OVERVIEW_WIDTH} {high}" preserveAspectRatio="none"'
    parts = [f'<svg class="run" {size}>']
    for number, name in enumerate(nodes):
        y = 10 + 8 * number
        for spans, css in ((lives(trace, name, end), "life"), (pauses(trace, name, end), "pause")):
            for span in spans:
                wide = max(1.0, (span.end_ms - span.start_ms) * scale)
                parts.append(
                    f'<rect class="{css}" x="{span.start_ms * scale:.1f}" y="{y}" width="{wide:.1f}" height="4"/>'
                )
    for m in trace.moments:
        x = f"{m.at_ms * scale:.1f}"
        if m.kind in (Kind.FAULT, Kind.HEALED):
            css = "fault" if m.kind is Kind.FAULT else "healed"
            parts.append(f'<rect class="{css}" x="{x}" y="0" width="2" height="7"/>')
        elif m.kind in DEATHS and m.machine in nodes:
            parts.append(f'<path class="death" d="M{x} {8 + 8 * nodes.index(m.machine)}v8"/>')
        elif m.kind is Kind.VIOLATION:
            parts.append(f'<path class="violation-line" d="M{x} 0V{high}"/>')
    parts.append(f'<rect class="view" x="0" y="0" width="10" height="{high}"/></svg>')
    return "".join(parts)
