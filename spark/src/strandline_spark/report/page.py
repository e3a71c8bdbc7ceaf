"""The frame of a report: title, verdict, the figures that matter, sections.

A page refers to nothing outside itself, and says so to the browser (Content-Security-Policy): nothing that stands in a
topic's name or a record can make it load or run anything.
"""

import importlib.resources
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from strandline.base import VERSION
from strandline.base.value import Value
from strandline.sim.diagram.element import element, escaped
from strandline.sim.diagram.page import filled
from strandline_spark.report.tables import number


class Level(Enum):
    GOOD, WARNING, BAD = "good", "warning", "bad"


SIGNS = {Level.GOOD: ("✓", "fine"), Level.WARNING: ("!", "warning"), Level.BAD: ("✗", "bad")}


class Verdict(Value, frozen=True):
    """What a reader must know who reads one line. `level`: "good", "warning" or "bad"."""

    level: str
    text: str
    detail: str = ""


def page(
    title: str,
    *content: str,
    verdict: Verdict | None = None,
    facts: Sequence[tuple[str, object]] = (),
    lead: str = "",
    made: datetime | None = None,
) -> str:
    """The whole page. `content`: markup (sections, tables, plots); all else is plain text and is escaped here.

    `facts`: names and numbers (or texts) that stand out; `made`: when, UTC, now if None.
    """
    when = (made or datetime.now(UTC)).astimezone(UTC)
    values = {
        "title": escaped(title),
        "style": importlib.resources.files(__package__).joinpath("page.css").read_text("utf-8"),
        "lead": element("p", escaped(lead), class_="note") if lead else "",
        "verdict": verdict_box(verdict) if verdict is not None else "",
        "facts": fact_boxes(facts) if facts else "",
        "content": "\n".join(content),
        "footer": escaped(f"strandline {VERSION}, {when:%Y-%m-%d %H:%M:%S} UTC"),
    }
    return filled(importlib.resources.files(__package__).joinpath("page.html").read_text("utf-8"), values)


def section(heading: str, *content: str, note: str = "") -> str:
    """`content` is markup; `note` explains it in a sentence or two."""
    paragraph = element("p", escaped(note), class_="note") if note else ""
    return element("section", element("h2", escaped(heading)), paragraph, *content)


def verdict_box(verdict: Verdict) -> str:
    sign, name = SIGNS[Level(verdict.level)]
    paragraph = element("p", escaped(verdict.detail)) if verdict.detail else ""
    return element(
        "div",
        element("span", sign, class_="sign", role="img", aria_label=name),
        element("div", element("b", escaped(verdict.text)), paragraph),
        class_=f"verdict {verdict.level}",
        role="status",
    )


def fact_boxes(facts: Sequence[tuple[str, object]]) -> str:
    boxes = (element("div", element("dt", escaped(name)), element("dd", escaped(number(fact)))) for name, fact in facts)
    return element("dl", *boxes, class_="facts")


def write_page(path: str | Path, html: str) -> None:
    """As a whole or not at all. Raises OSError."""
    target = Path(path)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        fresh.write_text(html, "utf-8")
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
