"""What transactions of the sink are called.

    strandline-sink/NAME                          the driver's: in it decisions about the write NAME are recorded
    strandline-sink/NAME/RUN/PARTITION.ATTEMPT.SLOT   one attempt of a task

A streaming query is named by its id, which lies in its checkpoint. A run is one start of the query, or one batch
write. No two runs share an id, so a run never aborts by accident what another one has prepared. Within a run ids are
used again, batch after batch.
"""

import re
from typing import NamedTuple

from strandline.client.two_phase import SINK_IDS
from strandline_spark.errors import BadOption

NAME_MAX = 200
NAME = re.compile(r"[A-Za-z0-9._-]+")
PROBE = f"{SINK_IDS}-probe"  # of nobody: asks whether brokers allow two-phase commit


class TaskId(NamedTuple):
    """What a task's transactional id says."""

    name: str
    run: str
    task: str


def checked_name(name: str) -> str:
    """Raises BadOption."""
    if len(name) > NAME_MAX or not NAME.fullmatch(name):
        raise BadOption(
            f"option transactionName: {name[:NAME_MAX]!r} is not a name",
            f"a name has at most {NAME_MAX} letters, digits, dots, underscores and hyphens",
        )
    return name


def driver_id(name: str) -> str:
    return f"{SINK_IDS}/{name}"


def task_id(name: str, run: str, partition: int, attempt: int, slot: int) -> str:
    return f"{SINK_IDS}/{name}/{run}/{partition}.{attempt}.{slot}"


def parsed(transactional_id: str) -> TaskId | None:
    """None if it is not a task's."""
    parts = transactional_id.split("/")
    return TaskId(*parts[1:]) if len(parts) == 4 and parts[0] == SINK_IDS else None


def pattern_of(name: str | None) -> str:
    """A regular expression (RE2) for the ids of a write's tasks, or of all writes."""
    return f"{SINK_IDS}/{'[^/]+' if name is None else re.escape(name)}/.+"
