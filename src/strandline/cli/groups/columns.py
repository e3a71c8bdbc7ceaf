"""The columns of kafka-consumer-groups, by key of a row, and what else coordinators and leaders say."""

from typing import Any

from strandline.cli.columns import show
from strandline.cli.show import Row

LISTED = {"group": "GROUP", "type": "TYPE", "protocol_type": "PROTOCOL", "state": "STATE", "coordinator": "COORDINATOR"}
DESCRIBED = {
    "group": "GROUP",
    "coordinator": "COORDINATOR",
    "type": "TYPE",
    "assignor": "ASSIGNMENT-STRATEGY",
    "state": "STATE",
    "epoch": "EPOCH",
    "members": "#MEMBERS",
}
MEMBERS = {
    "group": "GROUP",
    "member_id": "CONSUMER-ID",
    "instance_id": "GROUP-INSTANCE-ID",
    "host": "HOST",
    "client_id": "CLIENT-ID",
    "partitions": "#PARTITIONS",
    "assigned": "ASSIGNMENT",
}
OF_CONSUMERS = {"epoch": "CURRENT-EPOCH", "target": "TARGET-ASSIGNMENT"}  # of the consumer protocol
POSITIONS = {
    "group": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "committed_offset": "CURRENT-OFFSET",
    "log_start_offset": "LOG-START-OFFSET",
    "last_stable_offset": "LAST-STABLE-OFFSET",
    "log_end_offset": "LOG-END-OFFSET",
    "lag": "LAG",
    "member_id": "CONSUMER-ID",
    "host": "HOST",
    "client_id": "CLIENT-ID",
}
RESET = {
    "group": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "old_offset": "CURRENT-OFFSET",
    "new_offset": "NEW-OFFSET",
    "consequence": "CONSEQUENCE",
}
DELETED_OFFSETS = {"group": "GROUP", "topic": "TOPIC", "partition": "PARTITION", "offset": "CURRENT-OFFSET"}
DELETED_GROUPS = {"group": "GROUP", "state": "STATE", "offsets": "#OFFSETS"}


def show_groups(rows: list[Row], columns: dict[str, str], json_output: bool) -> None:
    """What is not known, or is not there, is a dash, as Kafka's tool has it."""
    show(rows if json_output else [{key: dashed(row[key]) for key in columns} for row in rows], columns, json_output)


def dashed(value: Any) -> Any:
    return "-" if value in (None, "", []) else value
