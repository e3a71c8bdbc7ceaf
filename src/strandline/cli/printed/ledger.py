"""The loss ledger, and elections that can lose records."""

from typing import Annotated, NotRequired, TypedDict

from strandline.cli.printed.places import ReplicaLog
from strandline.cli.printed.words import Epoch, Error, Milliseconds, Partition, Topic, says

Certainty = Annotated[int, says("0: nothing is known; 1: at most these offsets; 2: exactly these")]


class LossRow(TypedDict):
    """One entry of the loss ledger."""

    time_ms: Milliseconds
    topic: Topic
    partition: Partition
    where: Annotated[str, says("replica: its log; metadata: the new leader; withdrawn: it left ISR and ELR")]
    broker: Annotated[int, says("whose ledger has it; -1: the metadata log")]
    replica: int
    start: Annotated[int, says("the first offset that may be lost")]
    end: Annotated[int, says("the offset after the last; -1: not known")]
    certainty: Certainty
    old_epoch: int
    new_epoch: int
    cause: str
    count: Annotated[int, says("how often it happened")]
    last_time_ms: Milliseconds
    acknowledged: Annotated[bool, says("an operator has seen it")]
    acknowledged_by: str | None
    acknowledged_ms: int | None


class NotAsked(TypedDict):
    """A broker that did not answer."""

    broker: int
    why: str


class Unread(TypedDict):
    """A ledger that its broker could not read."""

    broker: int
    directory: str


class Losses(TypedDict):
    """The loss ledger of all brokers."""

    losses: list[LossRow]
    exactly_lost_records: int
    missing_copies: Annotated[int, says("copies that one replica lost and others had")]
    not_asked: list[NotAsked]
    left_out: Annotated[int, says("entries that brokers left out, because there are too many")]
    unread: list[Unread]
    restricted: NotRequired[Annotated[bool, says("the user may describe only some topics")]]


class PlannedLoss(TypedDict):
    """Which offsets an election can lose."""

    start: int
    end: int
    certainty: Certainty
    certain_start: Annotated[int, says("the offsets from here are certainly lost")]
    certain_end: int
    words: list[str]


class ElectionPlan(TypedDict):
    """What an election would do to one partition."""

    topic: Topic
    partition: Partition
    outcome: str
    candidate: Annotated[int, says("the broker that would lead; -1: none")]
    why: str
    replicas: list[ReplicaLog]
    loss: PlannedLoss | None


class Elected(TypedDict):
    """What an election did to one partition."""

    topic: Topic
    partition: Partition
    outcome: Annotated[str, says("elected, not needed, or failed")]
    error: Error
    leader: int | None
    leader_epoch: Epoch | None
    ledger: Annotated[LossRow | None, says("the entry for what the election may have lost")]


class Election(TypedDict):
    """The plan of an election that may lose records, and its results; with --dry-run the plan alone."""

    plan: list[ElectionPlan]
    results: NotRequired[list[Elected]]
