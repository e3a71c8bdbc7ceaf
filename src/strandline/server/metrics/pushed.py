"""What clients have pushed, as text for Prometheus, behind the node's own metrics.

A metric of clients has the labels that each client gives it, so it is written here and not by `exposition.text_of`.
"""

import math
from collections.abc import Iterator

from strandline.broker.telemetry.pushed import COUNTER_END, Labels, PushedSeries
from strandline.server.metrics.exposition import escaped

HELP = "Pushed by clients (KIP-714)"
LINES_PER_PIECE = 400  # each has labels of its own, which takes 20 µs


def text_of_pushed(pushed: PushedSeries) -> Iterator[str]:
    """In pieces, each of at most so many lines that another may do something in between."""
    for name, samples in pushed.families():
        kind = "counter" if name.endswith(COUNTER_END) else "gauge"
        lines = [f"# HELP {name} {HELP}\n# TYPE {name} {kind}\n"]
        for (instance_id, labels), value in samples:
            client = pushed.clients.get(instance_id)
            if client is not None:  # else it was forgotten meanwhile
                lines.append(f"{name}{{{written(client.labels + labels)}}} {shown(value)}\n")
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
