"""The demonstration as one page that needs nothing but a browser: the counts side by side, and the timeline."""

import importlib.resources

from strandline.base import VERSION
from strandline.demo.exactly_once.count import Count
from strandline.demo.exactly_once.play import Event, ExactlyOnceResult
from strandline.demo.exactly_once.words import MARKS, facts, money, verdict
from strandline.sim.diagram.element import element, escaped
from strandline.sim.diagram.page import filled


def page(outcome: ExactlyOnceResult) -> str:
    values = {
        "verdict": escaped(verdict(outcome)),
        "with": card("With transactions", outcome.with_transactions),
        "without": card("Without transactions", outcome.without),
        "facts": "\n".join(fact(outcome, *row) for row in facts(outcome)),
        "events": "\n".join(line(event, outcome.wish.transfers) for event in outcome.events),
        "workers": str(outcome.wish.workers),
        "seconds": f"{outcome.seconds:.0f}",
        "version": escaped(VERSION),
    }
    template = importlib.resources.files(__package__).joinpath("exactly_once.html").read_text("utf-8")
    return filled(template, values)


def card(name: str, count: Count) -> str:
    wrong = count.transfers - count.once
    text = f"of {count.transfers:,} transfers are not booked exactly once, {money(count.after - count.before)}"
    return element(
        "div",
        element("h2", escaped(name)),
        element("p", element("b", f"{wrong:,}"), element("span", escaped(text)), class_="number"),
        class_="verdict good" if count.holds else "verdict bad",
    )


def fact(outcome: ExactlyOnceResult, name: str, *cells: str) -> str:
    pairs = zip(cells, (outcome.with_transactions, outcome.without), strict=True)
    written = (element("td", escaped(cell), class_="good" if count.holds else "bad") for cell, count in pairs)
    return element("tr", element("th", escaped(name)), *written)


def line(event: Event, transfers: int) -> str:
    mark, _ = MARKS[event.kind]
    bars = (
        element(
            "td",
            element(
                "div",
                element("u", " ", style=f"width:{100 * booked / max(1, transfers):.2f}%"),
                class_="bar",
                title=f"{booked:,} of {transfers:,} transfers are booked",
            ),
        )
        for booked in event.booked
    )
    return element(
        "tr",
        element("td", f"{event.at_s:.1f} s", class_="at"),
        element("td", escaped(f"{mark} {event.text}")),
        *bars,
        class_=event.kind,
    )
