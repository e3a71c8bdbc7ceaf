"""Tables of a report, and how numbers are written in it."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice

from strandline.sim.diagram.element import element, escaped

ROWS_MAX = 1000


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    caption: str = "",
    limit: int = ROWS_MAX,
    levels: Sequence[str] = (),
) -> str:
    """`rows`: a value for each column; numbers stand right, with separators; None is empty.

    More than `limit` rows are not shown, and counted. `levels`: for each row "good", "warning", "bad" or "", the colour
    of its edge; the row itself must say it too.
    """
    every = iter(rows)
    shown = list(islice(every, limit))
    left_out = sum(1 for _ in every)
    right = [all(is_number(row[i]) for row in shown) and bool(shown) for i in range(len(columns))]
    head = (
        element("th", escaped(name), scope="col", class_="n" if is_right else None)
        for name, is_right in zip(columns, right, strict=True)
    )
    body = (
        element("tr", *cells(row, right), class_=(levels[at] if at < len(levels) else "") or None)
        for at, row in enumerate(shown)
    )
    text = ", ".join(part for part in (caption, f"{left_out:,} more are not shown" if left_out else "") if part)
    markup = element(
        "table",
        element("caption", escaped(text)) if text else "",
        element("thead", element("tr", *head)),
        element("tbody", "", *body),
    )
    return element("div", markup, class_="wide", tabindex=0, role="region", aria_label=caption or "table")


def cells(row: Sequence[object], right: Sequence[bool]) -> Iterable[str]:
    return (
        element("td", escaped(number(cell)), class_="n" if is_right else None)
        for cell, is_right in zip(row, right, strict=True)
    )


def is_number(cell: object) -> bool:
    return cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool))


def number(cell: object) -> str:
    """As a reader wants it: 1,234,567 and 0.125; times in UTC to the second; None is empty, True is yes."""
    match cell:
        case None:
            return ""
        case bool():
            return "yes" if cell else "no"
        case int():
            return f"{cell:,}"
        case float():
            return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
        case datetime():
            return f"{cell:%Y-%m-%d %H:%M:%S}"
        case _:
            return str(cell)
