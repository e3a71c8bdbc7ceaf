"""What the system says about this process, from /proc: CPU, memory, open files. Nothing where there is no /proc."""

import os
import resource
from collections.abc import Iterator

from strandline.base.metrics import Family
from strandline.broker.metrics import of_process

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/self/stat after the name in parentheses, which may have blanks.
UTIME, STIME, STARTTIME, VSIZE, RSS = 11, 12, 19, 20, 21


def families() -> Iterator[Family]:
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        boot = boot_time()
        open_fds = len(os.listdir("/proc/self/fd"))
    except OSError:
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    for metric, value in (
        (of_process.CPU, (int(fields[UTIME]) + int(fields[STIME])) / TICKS),
        (of_process.RESIDENT, int(fields[RSS]) * PAGE_BYTES),
        (of_process.VIRTUAL, int(fields[VSIZE])),
        (of_process.OPEN_FDS, open_fds),
        (of_process.MAX_FDS, soft),
        (of_process.STARTED, boot + int(fields[STARTTIME]) / TICKS),
    ):
        yield Family(metric, [((), value)])


def boot_time() -> int:
    with open("/proc/stat", "rb") as file:
        for line in file:
            if line.startswith(b"btime "):
                return int(line.split()[1])
    raise OSError("/proc/stat has no btime")
