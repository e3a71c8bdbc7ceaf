"""How a node learns that the process which started it has ended, however that ended: by a pipe that only closes then.

Whoever starts nodes holds the writing end of one pipe for as long as it lives, and nothing is ever written to it. Each
node inherits the reading end. The system closes the writing end when its process ends, also by SIGKILL, on every Unix.
A node that somebody started by hand has no such pipe.
"""

import asyncio
import os
import stat
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

LIFELINE = "STRANDLINE_LIFELINE"  # the number of the descriptor that a node inherits, and who has the other end


class Lifeline(NamedTuple):
    end: int
    starter: int  # the process that has the writing end


@cache
def reading_end() -> int:
    """To be passed to each node that this process starts. The writing end is never closed, and never inherited."""
    reading, _ = os.pipe()
    return reading


def environment() -> dict[str, str]:
    """How a node notices it."""
    return {LIFELINE: f"{reading_end()} {os.getpid()}"}


def inherited() -> Lifeline | None:
    """None: somebody started this process by hand."""
    words = os.environ.get(LIFELINE, "").split()
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return None
    end, starter = map(int, words)
    try:
        is_pipe = stat.S_ISFIFO(os.fstat(end).st_mode)
    except (OSError, OverflowError):
        return None
    return Lifeline(end, starter) if is_pipe else None


def watch(loop: asyncio.AbstractEventLoop, end: int, on_gone: Callable[[], None]) -> None:
    """Call `on_gone` once, when the other end is closed."""
    assert end >= 0

    def readable() -> None:
        if not os.read(end, 1):
            loop.remove_reader(end)
            os.close(end)
            on_gone()

    loop.add_reader(end, readable)
