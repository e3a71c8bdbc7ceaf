"""Elements of XML, written in one way: every text and every value is escaped here and nowhere else."""

from strandline.sim.runs.story import clean, flat

TEXT_MAX = 400  # of what is shown when pointed at


def escaped(text: str) -> str:
    return clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def opened(name: str, **attributes: object) -> str:
    """`class_` is class, `data_t` is data-t; what is None is not there."""
    parts = [
        f' {key.rstrip("_").replace("_", "-")}="{escaped(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    ]
    return f"<{name}{''.join(parts)}>"


def element(name: str, *content: str, **attributes: object) -> str:
    """`content` is markup already."""
    start = opened(name, **attributes)
    return f"{start}{''.join(content)}</{name}>" if content else f"{start[:-1]}/>"


def hint(text: str) -> str:
    """What it says when somebody points at it."""
    text = flat(text)
    return element("title", escaped(text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "…"))


def hidden(is_hidden: object) -> str | None:
    return "none" if is_hidden else None


def at(x: float, y: float) -> str:
    return f"translate({x} {y})"
