"""Plots of a report. Each is a figure with a caption, says in words what it shows, and has its numbers as a table.

What they draw is bounded: of long series the least and the largest of each stretch, of many rows the first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from strandline.base.value import Value
from strandline.sim.diagram.element import element, escaped
from strandline_spark.report.drawing import BAD, DIM, LINE, WARN, colour, drawn, legend_of
from strandline_spark.report.tables import number, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS_MAX = 600  # of one series
SERIES_MAX = 12
ROWS_MAX = 60
TABLE_MAX = 200
NAME_MAX = 44
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))  # who sees no colours sees these
X = float | datetime


class Series(Value, frozen=True):
    """`x`: numbers, or times in UTC, rising; `y`: numbers, None where there is none (the line has a gap there)."""

    name: str
    x: Sequence[X]
    y: Sequence[float | None]


class Span(Value, frozen=True):
    """A row of `spans`: what reaches from `start` to `end`, with a tick at `mark`, and crosses where something is."""

    name: str
    start: int
    end: int
    mark: int | None = None
    errors: Sequence[int] = ()
    warnings: Sequence[int] = ()


class Frame(NamedTuple):
    title: str
    said: str
    note: str


def lines(
    title: str, series: Sequence[Series], *, x: str = "", y: str = "", note: str = "", bottom: bool = True
) -> str:
    """Lines over a common axis. `bottom`: the y axis begins at 0."""
    return over_x(title, series, x, y, note, bottom, is_stepped=False)


def steps(title: str, series: Sequence[Series], *, x: str = "", y: str = "", note: str = "") -> str:
    """As `lines`, each value held until the next: counts, lags, what is known only at times."""
    return over_x(title, series, x, y, note, True, is_stepped=True)


def over_x(
    title: str, series: Sequence[Series], x: str, y: str, note: str, from_zero: bool, *, is_stepped: bool
) -> str:
    shown = [thinned(one) for one in series[:SERIES_MAX]]

    def draw(axes: "Axes") -> None:
        numbers(axes, x_too=not any(isinstance(at, datetime) for one in shown for at in one.x))
        with legend_of(axes, 4):
            for index, one in enumerate(shown):
                axes.plot(
                    list(one.x),  # type: ignore[arg-type]  # matplotlib takes times
                    [float("nan") if value is None else value for value in one.y],
                    color=colour(index),
                    linestyle=DASHES[index // 8 % len(DASHES) if len(shown) > 4 else index],
                    linewidth=1.6,
                    marker="o" if len(one.x) <= 30 else None,
                    markersize=3.5,
                    drawstyle="steps-post" if is_stepped else "default",
                    label=short(one.name),
                )
        if from_zero:
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.set_xlabel(x)
        axes.set_ylabel(y)

    said = f"{title}: " + ("; ".join(words(one, y) for one in series[:SERIES_MAX]) or "no values")
    rows = ((one.name, at, value) for one in shown for at, value in zip(one.x, one.y, strict=True))
    return figure(
        Frame(title, said, more(note, len(series) - SERIES_MAX, "lines")),
        draw,
        3.0,
        ("series", x or "at", y or "value"),
        rows,
    )


def bars(
    title: str, rows: Sequence[tuple[str, float]], *, x: str = "", note: str = "", levels: Sequence[str] = ()
) -> str:
    """Horizontal bars in the order given, each with its number. `levels`: "bad", "warning" or "" for each."""
    shown = rows[:ROWS_MAX]
    inks = {"bad": BAD, "warning": WARN}

    def draw(axes: "Axes") -> None:
        numbers(axes, x_too=True)
        colours = [inks.get(level, colour(0)) for level in [*levels, *[""] * len(shown)][: len(shown)]]
        drawn_bars = axes.barh(range(len(shown)), [value for _, value in shown], color=colours)
        axes.bar_label(drawn_bars, [number(value) for _, value in shown], padding=4, fontsize=9)
        axes.margins(x=0.12)
        named_rows(axes, [name for name, _ in shown], x)

    said = f"{title}: " + ", ".join(f"{name} {number(value)}" for name, value in shown[:20])
    return figure(
        Frame(title, said, more(note, len(rows) - ROWS_MAX, "rows")), draw, high(len(shown)), ("", x or "value"), shown
    )


def stacked(
    title: str, names: Sequence[str], parts: Mapping[str, Sequence[float]], *, x: str = "", note: str = ""
) -> str:
    """Horizontal bars of several parts; `parts`: for each part its value in each of the `names`."""
    shown = names[:ROWS_MAX]

    def draw(axes: "Axes") -> None:
        numbers(axes, x_too=True)
        left = [0.0] * len(shown)
        with legend_of(axes, 5):
            for index, (part, values) in enumerate(parts.items()):
                axes.barh(range(len(shown)), values[: len(shown)], left=left, color=colour(index), label=short(part))
                left = [sum(pair) for pair in zip(left, values, strict=False)]
        named_rows(axes, shown, x)

    totals = {part: sum(values) for part, values in parts.items()}
    said = f"{title}: in all " + ", ".join(f"{part} {number(total)}" for part, total in totals.items())
    rows = ([name, *(values[at] for values in parts.values())] for at, name in enumerate(shown))
    return figure(
        Frame(title, said, more(note, len(names) - ROWS_MAX, "rows")), draw, high(len(shown)) + 0.4, ["", *parts], rows
    )


def spans(title: str, rows: Sequence[Span], *, x: str = "offset", mark: str = "", note: str = "") -> str:
    """What reaches from where to where, a row each; `mark`: what their ticks mean."""
    shown = rows[:ROWS_MAX]

    def draw(axes: "Axes") -> None:
        numbers(axes, x_too=True)
        at = range(len(shown))
        axes.barh(
            at, [row.end - row.start for row in shown], left=[row.start for row in shown], height=0.5, color=colour(5)
        )
        with legend_of(axes, 4):
            marked = [(row.mark, y) for row, y in zip(shown, at, strict=True) if row.mark is not None]
            for points, ink, shape, name in (
                (marked, DIM, "|", mark or "mark"),
                ([(p, y) for row, y in zip(shown, at, strict=True) for p in some(row.warnings)], WARN, "^", "warning"),
                ([(p, y) for row, y in zip(shown, at, strict=True) for p in some(row.errors)], BAD, "x", "error"),
            ):
                if points:
                    where = [p for p, _ in points], [y for _, y in points]
                    axes.plot(
                        *where, linestyle="", marker=shape, color=ink, markersize=8, markeredgewidth=1.8, label=name
                    )
        named_rows(axes, [row.name for row in shown], x)

    bad = sum(len(row.errors) for row in rows)
    said = f"{title}: {len(rows)} rows, {bad} errors"
    cells = ((row.name, row.start, row.end, row.mark, len(row.errors), len(row.warnings)) for row in shown)
    names = ("", "from", "to", mark or "mark", "errors", "warnings")
    return figure(
        Frame(title, said, more(note, len(rows) - ROWS_MAX, "rows")), draw, high(len(shown)) + 0.4, names, cells
    )


# --- pieces


def figure(
    frame: Frame,
    draw: "Callable[[Axes], None]",
    height_in: float,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
) -> str:
    note = element("span", escaped(frame.note)) if frame.note else ""
    return element(
        "figure",
        element("figcaption", escaped(frame.title), note),
        drawn(draw, height_in=height_in, said=frame.said),
        element(
            "details", element("summary", "the numbers"), table(columns, rows, limit=TABLE_MAX, caption=frame.title)
        ),
    )


def numbers(axes: "Axes", *, x_too: bool) -> None:
    from matplotlib.ticker import FuncFormatter

    readable = FuncFormatter(lambda value, _: number(int(value) if value == int(value) else value))
    axes.yaxis.set_major_formatter(readable)
    if x_too:
        axes.xaxis.set_major_formatter(readable)
    else:
        from matplotlib import dates

        kinds: Any = dates  # has no types
        locator = kinds.AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(kinds.ConciseDateFormatter(locator))
    axes.grid(visible=True, color=LINE, linewidth=0.6)


def named_rows(axes: "Axes", names: Sequence[str], x: str) -> None:
    """The first row on top, its name beside it."""
    axes.set_yticks(range(len(names)), [short(name) for name in names])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(x)


def thinned(series: Series) -> Series:
    """At most about `POINTS_MAX` points, no peak lost: of each stretch the first, the least, the largest, the last."""
    count = len(series.x)
    if count <= POINTS_MAX:
        return series
    size = -(-4 * count // POINTS_MAX)
    kept: list[int] = []
    for start in range(0, count, size):
        end = min(count, start + size)
        known = [at for at in range(start, end) if series.y[at] is not None]
        peaks = (
            {min(known, key=lambda at: series.y[at] or 0.0), max(known, key=lambda at: series.y[at] or 0.0)}
            if known
            else set()
        )
        kept += sorted({start, end - 1} | peaks)
    return Series(series.name, [series.x[at] for at in kept], [series.y[at] for at in kept])


def words(series: Series, unit: str) -> str:
    known = [value for value in series.y if value is not None]
    if not known:
        return f"{series.name}: no values"
    return (
        f"{series.name}: {number(min(known))} to {number(max(known))}, at the end {number(known[-1])} {unit}".rstrip()
    )


def some(points: Sequence[int]) -> Sequence[int]:
    step = max(1, len(points) // 50)
    return points[::step]


def short(name: str) -> str:
    """What does not fit lacks its middle: names differ at their ends. No leading _: matplotlib hides such labels."""
    cut = name if len(name) <= NAME_MAX else f"{name[: NAME_MAX // 2 - 1]}…{name[-NAME_MAX // 2 :]}"
    return f"\u200b{cut}" if cut.startswith("_") else cut


def more(note: str, count: int, what: str) -> str:
    return " ".join(part for part in (note, f"{count:,} more {what} are not drawn." if count > 0 else "") if part)


def high(rows: int) -> float:
    return 0.9 + 0.26 * max(1, rows)
