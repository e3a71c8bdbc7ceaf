"""What happened in one run, for people: which lines, in which words.

- A moment that only repeats another becomes part of that one's line: steps of a high watermark, refusals, reports.
  What changes the picture (a fault, a death, an election, a cut) ends such a run, so that causes stay before effects.
- What concerns other partitions only is left out; what does not fit goes by rank, the least important and the
  earliest first. Whatever was left out is counted.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from strandline.base.value import Value
from strandline.sim.world.trace import Kind, Moment, Trace

DETAIL_MS = 500  # before the end every single step is printed
LAST_MS = 3_000  # before the end lesser lines are worth more
WIDTH = 118
CLUSTER = "cluster"  # who did it, where no machine did

LIVES = (Kind.STARTED, Kind.KILLED, Kind.POWER_LOST, Kind.HALTED, Kind.PAUSED, Kind.RESUMED)
RANKS = {
    Kind.VIOLATION: 0,
    **dict.fromkeys(LIVES, 1),
    **dict.fromkeys((Kind.FAULT, Kind.HEALED, Kind.CONTROLLER, Kind.LEADS, Kind.TRUNCATED), 1),
    **dict.fromkeys((Kind.ISR, Kind.FOLLOWS), 2),
    Kind.HIGH_WATERMARK: 3,
    Kind.REPORT: 4,
    Kind.CLIENT: 4,
}
LEAST = 6


class Line(Value, frozen=True):
    """One moment, or several that are printed as one."""

    at_ms: int
    until_ms: int
    machine: str
    kind: Kind
    text: str
    partition: str
    times: int = 1


class StoryLines(Value, frozen=True):
    lines: tuple[Line, ...]
    left_out: tuple[tuple[str, int], ...]  # how many lines of which kind


def story(
    trace: Trace, *, title: str, verdict_text: str, replay: str, partitions: Sequence[str] = (), limit: int = 200
) -> str:
    chosen = concerned(trace, partitions, verdict_text)
    shown = story_lines(trace, chosen, limit)
    parts = [title, "=" * min(len(title), WIDTH), ""]
    for name, text in (
        ("what failed", verdict_text),
        ("replay", replay),
        ("the run", summary(trace)),
        ("partitions", f"{', '.join(chosen)}; others are left out" if chosen else "all"),
    ):
        parts += [name, *wrapped(text, "    ")]
    parts += ["", *table(shown.lines)]
    if shown.left_out:
        parts += ["", *wrapped("left out: " + counted(shown.left_out), "")]
    return "\n".join(parts) + "\n"


def summary(trace: Trace) -> str:
    nodes, clients = machines(trace)
    return (
        f"{end_of(trace):,} ms, {len(trace.passages):,} messages, {len(trace.moments):,} moments;"
        f" {count_of(nodes, 'node')}; {count_of(clients, 'client')}"
    )


def count_of(names: Sequence[str], what: str) -> str:
    return (
        f"{what} {names[0]}"
        if len(names) == 1
        else f"{len(names)} {what}s ({', '.join(names)})"
        if names
        else f"no {what}s"
    )


def counted(left_out: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{count} × {kind}" for kind, count in left_out)


def table(lines: Sequence[Line]) -> Iterator[str]:
    whos = [line.machine or CLUSTER for line in lines]
    wide = max((len(who) for who in whos), default=0)
    kinds = max((len(line.kind) for line in lines), default=0)
    for line, who in zip(lines, whos, strict=True):
        head = f"{line.at_ms:>8,} ms  {who:<{wide}}  {line.kind:<{kinds}}  "
        first, *more = textwrap.wrap(flat(words(line)), max(40, WIDTH - len(head))) or [""]
        yield (head + first).rstrip()
        yield from (" " * len(head) + part for part in more)


def wrapped(text: str, indent: str) -> list[str]:
    """Its own lines, each of them folded where it is too long."""
    return [
        indent + part
        for line in text.splitlines() or [""]
        for part in textwrap.wrap(clean(line), WIDTH - len(indent), replace_whitespace=False) or [""]
    ]


def words(line: Line) -> str:
    if line.times == 1:
        return line.text
    last = f"until {line.until_ms:,} ms"
    return (
        f"{line.text}, {line.times} steps {last}"
        if line.kind is Kind.HIGH_WATERMARK
        else f"{line.text} (×{line.times} {last})"
    )


def flat(text: str) -> str:
    return " | ".join(part.strip() for part in clean(text).splitlines() if part.strip())


def clean(text: str) -> str:
    """Without what no terminal and no page should get to see."""
    return re.sub(r"[^\x20-\x7e\n\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text.replace("\t", " "))


# --- whom and what it is about


def end_of(trace: Trace) -> int:
    moments = max((moment.at_ms for moment in trace.moments), default=0)
    return max(moments, max((max(p.sent_ms, p.arrived_ms) for p in trace.passages), default=0))


def violated_at(trace: Trace) -> int | None:
    return max((moment.at_ms for moment in trace.moments if moment.kind is Kind.VIOLATION), default=None)


def machines(trace: Trace) -> tuple[list[str], list[str]]:
    """Nodes, and clients: whoever never started."""
    nodes = {m.machine for m in trace.moments if m.kind in LIVES and m.machine}
    names = {m.machine for m in trace.moments} | {p.source for p in trace.passages} | {p.target for p in trace.passages}
    return sorted(nodes, key=natural), sorted(names - nodes - {""}, key=natural)


def natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def partitions_of(trace: Trace) -> list[str]:
    return sorted({moment.partition for moment in trace.moments if moment.partition}, key=natural)


def concerned(trace: Trace, partitions: Sequence[str], verdict_text: str) -> tuple[str, ...]:
    """Those that were asked for, or else those that the verdict names; none: all of them."""
    if partitions:
        return tuple(sorted(dict.fromkeys(partitions), key=natural))
    return tuple(p for p in partitions_of(trace) if re.search(rf"(?<![\w.-]){re.escape(p)}(?!\d)", verdict_text))


# --- which lines


def story_lines(trace: Trace, partitions: Sequence[str], limit: int) -> StoryLines:
    chosen = [m for m in trace.moments if not m.partition or not partitions or m.partition in partitions]
    lines = list(collapsed(chosen, end_of(trace)))
    end = max((line.until_ms for line in lines), default=0)
    order = sorted(range(len(lines)), key=lambda at: (worth(lines[at], end), -at))
    kept = sorted(order[:limit])
    left = Counter(str(lines[at].kind) for at in order[limit:])
    others = len(trace.moments) - len(chosen)
    left_out = (*sorted(left.items()), *((("of other partitions", others),) if others else ()))
    return StoryLines(tuple(lines[at] for at in kept), left_out)


def worth(line: Line, end_ms: int) -> int:
    rank = RANKS[line.kind]
    if line.kind is Kind.REPORT and line.text.startswith(("debug", "info")):
        rank += 1
    return rank if line.until_ms >= end_ms - LAST_MS or rank <= 1 else min(LEAST, rank + 2)


def collapsed(moments: Sequence[Moment], end_ms: int) -> Iterator[Line]:
    runs: list[list[Moment]] = []
    growing: dict[tuple[str, ...], list[Moment]] = {}
    for moment in moments:
        key = likeness(moment)
        run = growing.get(key) if key else None
        if run is not None and (moment.kind is not Kind.HIGH_WATERMARK or moment.at_ms < end_ms - DETAIL_MS):
            run.append(moment)
            continue
        runs.append(begun := [moment])
        if ends_runs(moment):
            growing = {k: r for k, r in growing.items() if not interrupts(moment, r[-1])}
        if key:
            growing[key] = begun
    yield from map(line_of, runs)


def likeness(moment: Moment) -> tuple[str, ...]:
    """Moments that agree in this may be printed as one; empty: each is printed alone."""
    match moment.kind:
        case Kind.HIGH_WATERMARK:
            return (moment.kind, moment.machine, moment.partition, str(moment.leader_epoch))
        case Kind.CLIENT:
            return (moment.kind, moment.machine, moment.partition, re.sub(r"\d+", "#", moment.text))
        case Kind.CONTROLLER | Kind.REPORT:
            return (moment.kind, moment.machine, moment.partition, moment.text)
        case _:
            return ()


def ends_runs(moment: Moment) -> bool:
    return moment.kind not in (Kind.HIGH_WATERMARK, Kind.CLIENT, Kind.REPORT, Kind.CONTROLLER)


def interrupts(moment: Moment, last: Moment) -> bool:
    if moment.machine and moment.kind in LIVES:
        return moment.machine == last.machine
    return not moment.partition or moment.partition == last.partition


def line_of(run: Sequence[Moment]) -> Line:
    first, last = run[0], run[-1]
    text = first.text
    if len(run) > 1 and first.kind is Kind.HIGH_WATERMARK:
        text = f"{first.partition}: high watermark {first.high_watermark} → {last.high_watermark}"
    elif len(run) > 1 and last.text != first.text:
        text = f"{first.text} … {last.text}"
    return Line(first.at_ms, last.at_ms, first.machine, first.kind, text, first.partition, len(run))
