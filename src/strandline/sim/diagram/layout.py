"""Where things stand: time along x, one lane for each machine along y, the cluster's own lane at the top.

A lane holds its life line and below it one track for each partition that it has something to show of. The page's
script lays out by the same rule again when somebody picks other partitions.
"""

from collections.abc import Sequence

from strandline.base.value import Value

LEFT = 96  # names of machines
RIGHT = 12
TOP = 26  # the axis
TRACK = 19
LETTER = 5.8  # px, of a label
NEAR = 0.9  # px for each ms: from here on single arrows are drawn instead of ribbons
CLUSTER, NODE, CLIENT = "cluster", "node", "client"
HEAD = {CLUSTER: 34, NODE: 40, CLIENT: 24}  # height of a lane without tracks
LIFE = {CLUSTER: 20, NODE: 26, CLIENT: 12}  # y of its life line


class Lane(Value, frozen=True):
    name: str
    role: str
    tracks: tuple[str, ...]  # partitions, whether shown or not


class Layout(Value, frozen=True):
    lanes: tuple[Lane, ...]
    shown: tuple[str, ...]  # partitions
    start_ms: int  # the window
    end_ms: int
    width: int

    def x(self, at_ms: float) -> float:
        room = self.width - LEFT - RIGHT
        return round(LEFT + (at_ms - self.start_ms) * room / max(1, self.end_ms - self.start_ms), 1)

    def height_of(self, lane: Lane) -> int:
        return HEAD[lane.role] + TRACK * sum(track in self.shown for track in lane.tracks)

    def tops(self) -> list[int]:
        found, y = [], TOP
        for lane in self.lanes:
            found.append(y)
            y += self.height_of(lane)
        return found

    def height(self) -> int:
        return TOP + sum(map(self.height_of, self.lanes)) + 6

    def ticks(self) -> list[int]:
        step = tick_ms(self.end_ms - self.start_ms, self.width)
        first = -(-self.start_ms // step) * step
        return list(range(first, self.end_ms + 1, step))


def tick_ms(span_ms: int, width: int) -> int:
    """The smallest round step with room for its numbers."""
    apart = span_ms * 90 / max(1, width - LEFT - RIGHT)
    step = 1
    while step < apart:
        step = next((step * by for by in (2, 5) if step * by >= apart), step * 10)
    return step


def spread(marks: Sequence[tuple[float, float]], rows: int) -> list[int]:
    """A row for each label at (x, its width), in order; -1 if no row has space."""
    ends = [float("-inf")] * rows
    found = []
    for x, wide in marks:
        row = next((row for row in range(rows) if ends[row] <= x), -1)
        if row >= 0:
            ends[row] = x + wide + 6
        found.append(row)
    return found
