"""The last replica's two stories side by side, as one page that needs nothing but a browser."""

import importlib.resources

from strandline.base import VERSION
from strandline.demo.last_replica.story import HAPPENS, Moment, Seen, Story, ledger_words, remark
from strandline.sim.diagram.element import element, escaped
from strandline.sim.diagram.page import filled

CONDITIONS = {"up": "", "cut off": "cut off", "no power": "no power"}


def page(off: Story, on: Story) -> str:
    most = max(
        seen.log_end + seen.missing for story in (off, on) for moment in story.moments for seen in moment.brokers
    )
    steps = [
        step(before, side(off, before, most), side(on, after, most))
        for before, after in zip(off.moments, on.moments, strict=True)
    ]
    values = {
        "off_ledger": entries(off),
        "on_ledger": entries(on),
        "version": escaped(VERSION),
        "off": verdict(off),
        "on": verdict(on),
        "steps": "\n".join(steps),
    }
    template = importlib.resources.files(__package__).joinpath("last_replica.html").read_text("utf-8")
    return filled(template, values)


def verdict(story: Story) -> str:
    css = "verdict bad" if story.lost else "verdict good"
    text = f"of {story.acknowledged:,} acknowledged records are gone"
    if story.first_lost is not None and story.last_lost is not None:
        text += f": numbers {story.first_lost:,} to {story.last_lost:,}"
    name = "Eligible Leader Replicas " + ("on" if story.is_elr_on else "off")
    return element(
        "div",
        element("h2", escaped(name)),
        element("p", element("b", f"{story.lost:,}"), element("span", escaped(text)), class_="number"),
        element("p", escaped(ledger_words(story)), class_="ledger", title="\n".join(story.ledger)),
        class_=css,
    )


def entries(story: Story) -> str:
    return "".join(element("li", escaped(entry)) for entry in story.ledger) or element("li", "nothing")


def step(moment: Moment, *sides: str) -> str:
    badge = "start" if moment.step == "before" else moment.step
    head = element("header", element("i", escaped(badge)), element("h3", escaped(HAPPENS[moment.step])))
    return element("section", head, element("div", *sides, class_="pair"))


def side(story: Story, moment: Moment, most: int) -> str:
    is_worst = bool(story.lost) and moment is story.moments[-1]
    css = "side bad" if is_worst else "side waits" if moment.acknowledged < moment.sent or moment.leader < 0 else "side"
    return element(
        "article",
        element("div", *(row(seen, most) for seen in moment.brokers), class_="brokers"),
        sets(moment),
        element("p", escaped(remark(story, moment.step))),
        class_=css,
    )


def row(seen: Seen, most: int) -> str:
    durable = min(seen.durable_end, seen.log_end)
    pieces = (("disk", durable), ("cache", seen.log_end - durable), ("missing", seen.missing))
    text = f"{seen.log_end:,} records, {durable:,} of them on disk; {seen.missing:,} acknowledged ones are not here"
    bar = element(
        "div",
        *(
            element("u", " ", class_=css, style=f"width:{100 * size / max(1, most):.2f}%")
            for css, size in pieces
            if size
        ),
        class_="bar",
        title=text,
    )
    state = CONDITIONS[seen.condition]
    return element(
        "div",
        element("span", f"broker {seen.broker}", class_="name"),
        element("span", escaped(seen.role), class_=f"role {seen.role.replace(' ', '-')}"),
        bar,
        element("span", f"{seen.log_end:,}", class_="end"),
        element("span", escaped(state) or " ", class_="state"),
        class_="broker " + seen.condition.replace(" ", "-"),
    )


def sets(moment: Moment) -> str:
    def listed(brokers: tuple[int, ...]) -> str:
        return ", ".join(map(str, brokers)) or "empty"

    high = "–" if moment.high_watermark is None else f"{moment.high_watermark:,}"
    facts = [
        ("leader", "nobody" if moment.leader < 0 else str(moment.leader)),
        ("ISR", listed(moment.isr)),
        ("ELR", listed(moment.elr)),
        ("high watermark", high),
        ("acknowledged", f"{moment.acknowledged:,} of {moment.sent:,}" if moment.sent else "–"),
    ]
    return element("dl", *(element("div", element("dt", k), element("dd", escaped(v))) for k, v in facts))
