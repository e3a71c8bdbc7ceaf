"""What processes on this machine have used, as Linux reports it in /proc: for `strandline bench --pids`."""

import os
from pathlib import Path

from strandline.base.value import Value

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Usage(Value, frozen=True):
    pid: int
    cpu_s: float  # user and system
    resident_mb: float


def usage(pid: int, proc: Path = Path("/proc")) -> Usage:
    """Since the process began. Raises OSError if there is no such process."""
    # The name, in parentheses, may hold anything; what follows the last one is in fixed places.
    fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    pages = int((proc / str(pid) / "statm").read_text().split()[1])
    return Usage(pid, ticks / TICKS_PER_S, pages * PAGE_BYTES / 1e6)


def used_between(before: Usage, after: Usage) -> Usage:
    """The processor time of the span, and the memory at its end."""
    assert before.pid == after.pid
    return Usage(after.pid, after.cpu_s - before.cpu_s, after.resident_mb)
