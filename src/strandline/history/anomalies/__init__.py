"""All checks, one module each: a pure function of one key's view, which returns what is wrong."""

from collections.abc import Callable

from strandline.history.anomalies import (
    aborted_read,
    duplicate,
    inconsistent_offsets,
    intermediate_read,
    lost_write,
    nonmonotonic_poll,
    nonmonotonic_send,
    poll_skip,
    precommitted_read,
    send_skip,
    unseen,
    write_cycle,
)
from strandline.history.anomaly import Anomaly
from strandline.history.view import View

CHECKS: tuple[Callable[[View], list[Anomaly]], ...] = (
    lost_write.find,
    unseen.find,
    duplicate.find,
    inconsistent_offsets.find,
    poll_skip.find,
    nonmonotonic_poll.find,
    nonmonotonic_send.find,
    send_skip.find,
    aborted_read.find,
    precommitted_read.find,
    write_cycle.find,
    intermediate_read.find,
)
