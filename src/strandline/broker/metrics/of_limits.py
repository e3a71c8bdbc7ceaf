"""Metrics of the driver's limits against clients that take too much. Names follow the rules of `metrics.table`."""

from strandline.base.metrics import Kind, Metric

POOL = "kafka.network:type=SocketServer,name="
POOL_USED = Metric(
    "kafka_network_SocketServer_MemoryPoolUsed",
    Kind.GAUGE,
    "Bytes of parts of large requests, and of all unanswered requests if queued.max.request.bytes is set",
    (),
    POOL + "MemoryPoolUsed",
)
UNSENT = Metric(
    "strandline_unsent_answer_bytes",
    Kind.GAUGE,
    "Bytes of answers that wait for clients which read slowly (strandline.queued.response.max.bytes)",
)
REFUSED = Metric(
    "strandline_connections_refused_total", Kind.COUNTER, "Connections that a limit did not let in", ("reason",)
)
DROPPED = Metric(
    "strandline_connections_dropped_total",
    Kind.COUNTER,
    "Connections that were closed since they took too much or too long",
    ("reason",),
)
ACCEPT_THROTTLED = Metric(
    "strandline_accept_throttled_ms_total",
    Kind.COUNTER,
    "Milliseconds that a listener accepted nothing since connections came too fast",
    ("listener",),
)
LINES_LEFT_OUT = Metric(
    "strandline_log_lines_left_out_total",
    Kind.COUNTER,
    "Lines about clients that were counted, and not written to the log one by one",
    ("kind",),
)
METRICS = (POOL_USED, UNSENT, REFUSED, DROPPED, ACCEPT_THROTTLED, LINES_LEFT_OUT)
