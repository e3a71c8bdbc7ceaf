"""Metrics of a node's process, and of its loop that serves everybody. Names follow the rules of `metrics.table`."""

from strandline.base.metrics import Kind, Metric

LONG_STEPS = Metric(
    "strandline_node_long_steps_ms",
    Kind.HISTOGRAM,
    "Milliseconds of each step that kept the node's loop for at least 10: nobody else is served meanwhile",
    ("cause",),
)
CPU = Metric("process_cpu_seconds_total", Kind.COUNTER, "User and system CPU seconds")
RESIDENT = Metric("process_resident_memory_bytes", Kind.GAUGE, "Resident memory")
VIRTUAL = Metric("process_virtual_memory_bytes", Kind.GAUGE, "Virtual memory")
OPEN_FDS = Metric("process_open_fds", Kind.GAUGE, "Open file descriptors")
MAX_FDS = Metric("process_max_fds", Kind.GAUGE, "Limit of open file descriptors")
STARTED = Metric("process_start_time_seconds", Kind.GAUGE, "When the process started, in seconds since the epoch")

METRICS = (LONG_STEPS, CPU, RESIDENT, VIRTUAL, OPEN_FDS, MAX_FDS, STARTED)
