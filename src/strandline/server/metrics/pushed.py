"""What clients have pushed, as text for Prometheus, behind the node's own metrics.

A metric of clients has the labels that each client gives it, so it is written here and not by `exposition.text_of`.
"""

import math
from collections.abc import Iterator

from strandline.broker.telemetry.pushed import Labels, PushedSeries
from strandline.server.metrics.exposition import LINES_PER_PIECE, escaped

HELP = "Pushed by clients (KIP-714)"


def text_of_pushed(pushed: PushedSeries) -> Iterator[str]:
    """In pieces, each of at most so many lines that another may do something in between."""
    for name, is_counter, samples in pushed.families():
        lines = [f"# HELP {name} {HELP}\n# TYPE {name} {'counter' if is_counter else 'gauge'}\n"]
        for labels, value in samples:
            lines.append(f"{name}{{{written(labels)}}} {shown(value)}\n")
            if len(lines) >= LINES_PER_PIECE:
                yield "".join(lines)
                lines = []
        yield "".join(lines)


def written(labels: Labels) -> str:
    return ",".join([f'{name}="{escaped(text)}"' for name, text in labels])


def shown(value: float) -> str:
    """As Prometheus writes it: 3 and not 3.0, NaN, +Inf."""
    if math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
