"""What a run leaves behind for people: moments in the life of machines, and messages between them.

A run that nobody will look at keeps none of this; since a run follows from its plan alone, it can be repeated with a
trace once it has failed.
"""

from enum import StrEnum

from strandline.base.value import Value


class Kind(StrEnum):
    STARTED = "started"
    KILLED = "killed"
    POWER_LOST = "power lost"
    HALTED = "halted"
    PAUSED = "paused"
    RESUMED = "resumed"
    CONTROLLER = "controller"  # became the active controller
    LEADS = "leads"  # a partition, in an epoch
    FOLLOWS = "follows"
    ISR = "isr"  # changed in the committed metadata
    HIGH_WATERMARK = "high watermark"  # of a leader
    TRUNCATED = "truncated"
    FAULT = "fault"  # of network, disk or clock
    HEALED = "healed"
    CLIENT = "client"  # an operation of a client ended
    REPORT = "report"  # a line of a node's own log
    VIOLATION = "violation"


class Moment(Value, frozen=True):
    """Something happened on one machine, or (machine "") to the world."""

    at_ms: int  # since the run began
    machine: str  # "n1", "pa"
    kind: Kind
    text: str  # for people, without the machine and the time
    partition: str = ""  # "orders-0"; empty if it concerns none, or all
    high_watermark: int = -1
    log_end_offset: int = -1
    leader_epoch: int = -1


class Passage(Value, frozen=True):
    """One message on its way. An answer goes the other way under the request's name."""

    sent_ms: int
    arrived_ms: int  # -1: it never did
    source: str
    target: str
    name: str  # "Fetch", "Produce": of the API
    is_answer: bool
    partitions: tuple[str, ...] = ()  # those that it names, as far as that is known; empty: none, or all


class Trace:
    """Everything of one run, in the order in which it happened."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self.passages: list[Passage] = []  # in the order of their arrival
