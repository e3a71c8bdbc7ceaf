"""What a picture shows, and where: the machines of a trace in lanes, a window of its time, some of its partitions."""

from collections.abc import Iterator, Sequence

from strandline.sim.diagram.layout import CLIENT, CLUSTER, HEAD, LIFE, NODE, TRACK, Lane, Layout
from strandline.sim.diagram.messages import Chosen
from strandline.sim.diagram.spans import leaderships
from strandline.sim.runs.story import end_of, machines, natural, partitions_of
from strandline.sim.world.trace import Trace

WIDTH = 1500


class Frame:
    """`drawn`: the times of which anything is drawn at all; the window is a part of them."""

    def __init__(
        self, trace: Trace, window: tuple[int, int], shown: Sequence[str], chosen: Chosen, drawn: tuple[int, int]
    ) -> None:
        self.trace = trace
        self.chosen = chosen
        self.drawn = drawn
        self.end = end_of(trace)
        self.nodes, clients = machines(trace)
        self.partitions = partitions_of(trace)
        self.leaderships = {p: leaderships(trace, p, self.end) for p in self.partitions}
        led: dict[str, dict[str, None]] = {}
        for partition, spans in self.leaderships.items():
            for span in spans:
                led.setdefault(span.machine, {})[partition] = None
        talking = {one for p in chosen.arrows for one in (p.source, p.target)}
        talking |= {m.machine for m in trace.moments if self.is_drawn(m.at_ms)}
        lanes = [Lane(CLUSTER, CLUSTER, tuple(self.partitions))]
        lanes += [Lane(name, NODE, tuple(sorted(led.get(name, ()), key=natural))) for name in self.nodes]
        lanes += [Lane(name, CLIENT, ()) for name in clients if name in talking]
        self.layout = Layout(tuple(lanes), tuple(shown or self.partitions), *window, WIDTH)
        self.height = self.layout.height()
        self.tops = self.layout.tops()
        self.number = {lane.name: number for number, lane in enumerate(lanes)}

    def is_drawn(self, start_ms: int, end_ms: int | None = None) -> bool:
        return start_ms <= self.drawn[1] and (start_ms if end_ms is None else end_ms) >= self.drawn[0]

    def x(self, at_ms: float) -> float:
        return self.layout.x(at_ms)

    def lanes(self) -> Iterator[tuple[int, Lane, int]]:
        """Number, lane, top."""
        for number, (lane, top) in enumerate(zip(self.layout.lanes, self.tops, strict=True)):
            yield number, lane, top

    def life_y(self, machine: str) -> int:
        number = self.number[machine]
        return self.tops[number] + LIFE[self.layout.lanes[number].role]

    def tracks(self, lane: Lane) -> Iterator[tuple[str, int | None]]:
        """Where in its lane each partition is; None: it is not shown."""
        y = HEAD[lane.role] - 3
        for partition in lane.tracks:
            if partition in self.layout.shown:
                yield partition, y
                y += TRACK
            else:
                yield partition, None
