"""Partitions, their replicas, and what is wrong with them."""

from typing import Annotated, NotRequired, TypedDict

from strandline.cli.printed.words import Epoch, Milliseconds, Partition, Topic, says

Nodes = list[int]


class PartitionRow(TypedDict):
    """One partition as the cluster's metadata has it."""

    topic: Topic
    partition: Partition
    leader: Annotated[int, says("-1: none")]
    leader_epoch: Epoch
    replicas: Annotated[Nodes, says("in the order of preference")]
    isr: Nodes
    effective_min_isr: Annotated[int, says("the smaller of min.insync.replicas and the number of replicas")]
    elr: Annotated[Nodes, says("Eligible Leader Replicas")]
    last_known_elr: Nodes
    last_known_leader: Annotated[int, says("-1: not known")]
    leader_recovery_state: Annotated[str, says("recovered, or recovering")]
    offline: Annotated[Nodes, says("replicas whose broker or log directory is offline")]
    adding: Annotated[Nodes, says("replicas that a reassignment adds")]
    removing: Annotated[Nodes, says("replicas that a reassignment removes")]
    recovery_strategy: Annotated[str, says("unclean.recovery.strategy; empty: the cluster does not report it")]


class WayOut(TypedDict):
    """One way out of a state."""

    what: str
    costs: Annotated[str, says("which records it can lose")]
    command: str


class Finding(TypedDict):
    """One thing that is wrong, or that something waits for."""

    what: str
    why: list[str]
    waits_for: Annotated[str, says("empty: for nothing")]
    needs_action: Annotated[bool, says("an operator must act")]
    is_missing_facts: Annotated[bool, says("a broker did not answer, and its answer could change this finding")]
    ways: list[WayOut]


class ReplicaLog(TypedDict):
    """What a replica reports about its log; `error` alone if it did not answer."""

    replica: int
    error: NotRequired[str]
    last_epoch: NotRequired[int]
    end_offset: NotRequired[int]
    high_watermark: NotRequired[int]
    current_epoch: NotRequired[int]
    log_start_offset: NotRequired[int]
    last_stable_offset: NotRequired[int]
    recovered_uncleanly: NotRequired[Annotated[bool, says("the last stop of its broker was unclean")]]
    is_whole: NotRequired[Annotated[bool, says("it has everything that it had written")]]
    damaged: NotRequired[Annotated[list[int] | None, says("the first damaged offset, and the offset after the last")]]


class HeldBy(TypedDict):
    """The open transaction that holds the last stable offset."""

    topic: Topic
    partition: Partition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: Milliseconds
    start_offset: int | None
    last_stable_offset: int
    high_watermark: int
    transactional_id: str | None
    state: str | None
    started_at_ms: int | None
    is_hanging: Annotated[bool, says("its coordinator does not know it")]


class Explained(PartitionRow):
    """A partition, what is wrong with it, and the ways out."""

    status: Annotated[int, says("0: nothing to do; 2: an operator must act; 3: a broker did not answer")]
    findings: list[Finding]
    logs: list[ReplicaLog]
    ledger_entries: Annotated[int, says("how many entries the loss ledger has for the partition")]
    acknowledged_entries: int
    if_one_is_lost: Annotated[list[str], says("what a lost record would mean")]
    withdrawn: Annotated[Nodes, says("replicas that were withdrawn because they lost records")]
    held_by: HeldBy | None


class Lag(TypedDict):
    """How far a replica is behind its leader."""

    replica: int
    records: Annotated[int | None, says("in offsets; null: not known")]
    bytes: int | None
    why: NotRequired[Annotated[str, says("why it is not known")]]


class Move(TypedDict):
    """One partition that is being reassigned."""

    topic: Topic
    partition: Partition
    replicas: Annotated[Nodes, says("before the move")]
    adding: Nodes
    removing: Nodes
    waits_for: str | None
    behind: list[Lag]


class LogOnDisk(TypedDict):
    """One replica's log."""

    topic: Topic
    partition: Partition
    size_bytes: int
    offset_lag: Annotated[int, says("behind the high watermark; for a future log, behind the current one")]
    is_future: Annotated[bool, says("it is being moved into this directory")]


class LogDir(TypedDict):
    """One log directory of a broker; `broker` and `error` alone if the broker did not answer."""

    broker: int
    error: Annotated[str | None, says("null: the directory is online")]
    log_dir: NotRequired[str]
    is_cordoned: NotRequired[Annotated[bool, says("it gets no new partitions")]]
    total_bytes: NotRequired[int]
    usable_bytes: NotRequired[int]
    partitions: NotRequired[list[LogOnDisk]]
