"""Consumer groups."""

from typing import Annotated, TypedDict

from strandline.cli.printed.places import Finding
from strandline.cli.printed.words import Error, Outcome, Partition, Topic, says


class GroupListed(TypedDict):
    """One group."""

    group: str
    type: Annotated[str, says("classic or consumer")]
    protocol_type: str
    state: str
    coordinator: Annotated[int, says("the broker that coordinates it")]


class GroupRow(TypedDict):
    """One group, as its coordinator describes it."""

    group: str
    coordinator: int
    type: str
    protocol_type: str
    state: str
    assignor: str
    members: Annotated[int, says("how many")]
    epoch: Annotated[int | None, says("of the consumer protocol; of a classic group, its generation")]
    in_state_ms: Annotated[int | None, says("since when it is in this state; null: not known")]


class MemberRow(TypedDict):
    """One member of a group."""

    group: str
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    epoch: Annotated[int | None, says("of the consumer protocol")]
    partitions: Annotated[int, says("how many it reads")]
    subscribed: Annotated[list[str], says("topics")]
    regex: str | None
    assigned: Annotated[list[str], says("what it reads, as TOPIC-PARTITION")]
    target: Annotated[list[str] | None, says("what it is to read; null: a classic group")]


class PositionRow(TypedDict):
    """How far a group is in one partition."""

    group: str
    topic: Topic
    partition: Partition
    committed_offset: int | None
    log_start_offset: int | None
    last_stable_offset: int | None
    log_end_offset: int | None
    lag: Annotated[int | None, says("in offsets; null: not known")]
    member_id: Annotated[str | None, says("who reads the partition")]
    client_id: str | None
    host: str | None
    error: Annotated[str | None, says("why the log's ends are not known")]


class Departure(TypedDict):
    """A member that left, or was removed."""

    member_id: str
    client_id: str
    host: str
    ago_ms: int
    why: str
    committed_ms_before: Annotated[int | None, says("how long before it left it committed an offset")]


class GroupExplained(TypedDict):
    """A group, and why it does not make progress."""

    group: str
    status: Annotated[int, says("0: nothing to do; 2: an operator must act; 3: a broker did not answer")]
    findings: list[Finding]
    described: GroupRow | None
    members: list[MemberRow]
    departures: list[Departure]
    positions: list[PositionRow]
    committed_within_s: Annotated[
        list[str] | None, says("partitions whose offset was committed while the command watched; null: it did not")
    ]


class ResetRow(TypedDict):
    """One offset that is reset."""

    group: str
    topic: Topic
    partition: Partition
    old_offset: int | None
    new_offset: int
    log_start_offset: int
    log_end_offset: int
    skipped: Annotated[int, says("how many offsets the group does not read")]
    repeated: Annotated[int, says("how many offsets the group reads again")]
    note: Annotated[str, says("why the new offset is another one than was asked for")]
    outcome: Outcome
    error: Error


class OffsetDeleted(TypedDict):
    """One committed offset that is deleted."""

    group: str
    topic: Topic
    partition: Partition
    offset: int
    outcome: Outcome
    error: Error


class GroupDeleted(TypedDict):
    """One group that is deleted."""

    group: str
    state: str
    offsets: Annotated[int, says("how many offsets it had committed")]
    outcome: Outcome
    error: Error
