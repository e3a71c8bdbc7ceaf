"""Which connections are closed because they are too slow, when memory is short. Without sockets and clock.

For readers time counts in looks at all connections (`Watch.look`), some seconds apart.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

STALLED_LOOKS = 2  # without a byte that was taken: the other side has stopped to read
FAST_BYTES = 32 * 1024  # in a second: 1 MiB is complete before a client's request.timeout.ms, 30 s
Number = int  # of a connection


class SlowReader(NamedTuple):
    number: Number
    held: int  # bytes
    stalled_looks: int
    is_node: bool  # nodes give way last


class SlowFrame(NamedTuple):
    number: Number
    held: int  # bytes that are allocated for it
    received: int  # bytes in the last second; it had begun before


def too_slow_to_read(rows: Iterable[SlowReader], held: int, held_max: int) -> Iterator[Number]:
    """Above half of the bound those give way that have stopped to read; above the bound also others. `held`: by all."""
    order = sorted(rows, key=lambda row: (row.is_node, row.stalled_looks < STALLED_LOOKS, -row.held, row.number))
    for row in order:
        if held > (held_max // 2 if row.stalled_looks >= STALLED_LOOKS else held_max):
            held -= row.held
            yield row.number


def too_slow_to_send(rows: Iterable[SlowFrame], held: int, held_max: int) -> Iterator[Number]:
    """Down to half of the bound, so that others do not wait again at once. A frame that comes fast enough is never
    among them: it will be complete, and others wait."""
    for row in sorted(rows, key=lambda row: (row.received, -row.held, row.number)):
        if held <= held_max // 2 or row.received >= FAST_BYTES:
            return
        held -= row.held
        yield row.number
