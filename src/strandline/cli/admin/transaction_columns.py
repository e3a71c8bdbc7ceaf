"""Transactions for whoever reads: Kafka's columns, in a line or in a table."""

from typing import Any

from strandline.cli.show import Column, Fitted, Row, show_rows

# By key of a row: Kafka's column.
LISTED = {
    "transactional_id": "TransactionalId",
    "coordinator": "Coordinator",
    "producer_id": "ProducerId",
    "state": "TransactionState",
}
DESCRIBED = {
    "coordinator": "CoordinatorId",
    "transactional_id": "TransactionalId",
    "producer_id": "ProducerId",
    "producer_epoch": "ProducerEpoch",
    "state": "TransactionState",
    "timeout_ms": "TransactionTimeoutMs",
    "started_at_ms": "CurrentTransactionStartTimeMs",
    "duration_ms": "TransactionDurationMs",
    "partitions": "TopicPartitions",
}
PRODUCERS = {
    "producer_id": "ProducerId",
    "producer_epoch": "ProducerEpoch",
    "coordinator_epoch": "LatestCoordinatorEpoch",
    "last_sequence": "LastSequence",
    "last_timestamp_ms": "LastTimestamp",
    "start_offset": "CurrentTransactionStartOffset",
}
HANGING = {
    "topic": "Topic",
    "partition": "Partition",
    "producer_id": "ProducerId",
    "producer_epoch": "ProducerEpoch",
    "coordinator_epoch": "CoordinatorEpoch",
    "start_offset": "StartOffset",
    "last_timestamp_ms": "LastTimestamp",
    "duration_min": "Duration(min)",
}


def show(rows: list[Row], columns: dict[str, str], json_output: bool) -> None:
    if not rows and not json_output:
        return
    show_rows(rows, json_output, lambda rows: table_of(rows, columns), lambda row: line_of(row, columns))


def line_of(row: Row, columns: dict[str, str]) -> str:
    return "\t".join(f"{title}: {text_of(row[key])}" for key, title in columns.items())


def table_of(rows: list[Row], columns: dict[str, str]) -> Fitted:
    numbers = [key for key in columns if all(isinstance(row[key], int) for row in rows)]
    table = Fitted(*(Column(title, "right" if key in numbers else "left") for key, title in columns.items()))
    for row in rows:
        table.add_row(*(text_of(row[key]) for key in columns))
    return table


def text_of(value: Any) -> str:
    """As kafka-transactions has it."""
    if value is None:
        return "None"
    return ",".join(value) if isinstance(value, list) else str(value)
