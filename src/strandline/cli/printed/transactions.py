"""Transactions and producers."""

from typing import Annotated, TypedDict

from strandline.cli.printed.words import Milliseconds, Partition, Topic, says


class TransactionListed(TypedDict):
    """One transactional id."""

    transactional_id: str
    coordinator: Annotated[int, says("the broker that coordinates it")]
    producer_id: int
    state: str


class TransactionRow(TypedDict):
    """One transactional id, as its coordinator describes it."""

    coordinator: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_at_ms: Annotated[int | None, says("null: no transaction is open")]
    duration_ms: int | None
    partitions: Annotated[list[str], says("as TOPIC-PARTITION")]


class ProducerRow(TypedDict):
    """One producer that a partition's leader knows."""

    topic: Topic
    partition: Partition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: Milliseconds
    start_offset: Annotated[int | None, says("of its open transaction; null: none is open")]


class HangingRow(ProducerRow):
    """One transaction that hangs in a partition."""

    duration_ms: int
    duration_min: int
