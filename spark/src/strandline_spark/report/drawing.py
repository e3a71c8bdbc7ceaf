"""A matplotlib figure as an SVG element of a page: its colours are the page's, in light and in dark, its text is text.

Only the SVG backend is used, and no global state of matplotlib's is changed: notebooks keep their own plots.
"""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from strandline.sim.diagram.element import element, escaped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_IN = 9.6
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "strandline",
    "text.parse_math": False,  # a dollar in a topic's name is a dollar
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "font.size": 10,
    "font.family": "DejaVu Sans",  # comes with matplotlib; pages show their own
    "legend.frameon": False,
    "axes.axisbelow": True,
}
# Marks that stand for the page's colours until the figure is markup.
SERIES = 8
TEXT, LINE, BAD = "#010a00", "#010b00", "#010c00"
WARN, GOOD, DIM = "#010d00", "#010e00", "#010f00"
NAMES = {TEXT: "text", LINE: "line", BAD: "bad", WARN: "warn", GOOD: "good", DIM: "dim"} | {
    f"#0100{number:02x}": f"c{number}" for number in range(SERIES)
}
KEPT_STYLES = re.compile(r"^(fill|stroke|opacity|font-size|font-weight|text-anchor)")
figures = count(1)


def colour(number: int) -> str:
    """That of the series of this number; they come again after `SERIES`."""
    return f"#0100{number % SERIES:02x}"


def drawn(draw: "Callable[[Axes], None]", *, height_in: float, said: str) -> str:
    """An `svg` element; `said` is what it shows, for those who cannot see it."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    inks: dict[Any, Any] = dict.fromkeys(
        ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), TEXT
    )
    lines: dict[Any, Any] = dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color", "grid.color"), LINE)
    with rc_context({**STYLE, **inks, **lines, "hatch.color": LINE}):
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        axes.patch.set_visible(False)
        draw(axes)
        written = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(written, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    root = ElementTree.fromstring(written.getvalue())
    return markup(root, f"f{next(figures)}-", said)


def markup(root: ElementTree.Element, prefix: str, said: str) -> str:
    """Written anew by our own hand: no style sheets, no metadata, ids that no other figure of the page has."""
    used = {name for node in root.iter() for value in node.attrib.values() for name in referred(value)}

    def markup_of(node: ElementTree.Element) -> str:
        name = local(node.tag)
        inner = [escaped(node.text)] if node.text and node.text.strip() else []
        inner += [markup_of(child) for child in node if local(child.tag) not in ("metadata", "style")]
        if name == "g" and not inner:
            return ""
        return element(name, *inner, **attributes(node, prefix, used))

    size = {key: value for key, value in root.attrib.items() if key == "viewBox"}
    return element(
        "svg", *map(markup_of, root), role="img", aria_label=said, xmlns="http://www.w3.org/2000/svg", **size
    )


def attributes(node: ElementTree.Element, prefix: str, used: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in node.attrib.items():
        name = local(key)
        if name == "id":
            if value in used:
                found["id"] = prefix + value
        elif name == "style":
            found["style"] = "; ".join(painted(value))
        elif name == "href":
            found["href"] = f"#{prefix}{value[1:]}"
        else:
            found[name] = value.replace("url(#", f"url(#{prefix}")
    return {key: value for key, value in found.items() if value}


def painted(style: str) -> Iterator[str]:
    for part in style.split(";"):
        key, _, value = (text.strip() for text in part.partition(":"))
        if KEPT_STYLES.match(key):
            yield f"{key}: {f'var(--{NAMES[value]})' if value in NAMES else value}"


def referred(value: str) -> list[str]:
    return re.findall(r"url\(#([^)]+)\)", value) + ([value[1:]] if value.startswith("#") else [])


def local(name: str) -> str:
    return name.rpartition("}")[2]


@contextmanager
def legend_of(axes: "Axes", columns: int) -> Iterator[None]:
    """After what is drawn within: who is who, below the plot, if there is more than one."""
    yield
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 1:
        figure = axes.get_figure()
        assert figure is not None
        figure.legend(handles, labels, loc="outside lower left", ncols=min(columns, len(labels)), fontsize=9)
