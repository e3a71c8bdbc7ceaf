"""What a batch of records means for the operator, one line each.

Changes of an ISR are the brokers' daily life and not reported here. Lost leaders and unclean elections are warnings,
counted beyond the first few, because one dead broker may cost thousands of partitions their leader.
"""

from collections.abc import Sequence
from typing import Any

from strandline.base.effects import Report
from strandline.base.ids import NOBODY, TopicIdPartition
from strandline.metadata.image import Image
from strandline.metadata.losses import UNKNOWN
from strandline.metadata.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

SHOWN = 10  # lines of one kind per batch


def reports_of(records: Sequence[Any], before: Image) -> list[Report]:
    """`before`: the image to which the records were not yet applied."""
    info: list[str] = []
    warnings: list[str] = []
    for record in records:
        match record:
            case RegisterBrokerRecord():
                info.append(f"broker {record.broker_id} has registered with epoch {record.broker_epoch}")
            case UnregisterBrokerRecord():
                info.append(f"broker {record.broker_id} is no longer registered")
            case BrokerRegistrationChangeRecord():
                state = {1: "is fenced", -1: "is unfenced", 0: "shuts down"}[record.fenced]
                info.append(f"broker {record.broker_id} {state}")
            case TopicRecord():
                info.append(f"topic {record.name} is created")
            case RemoveTopicRecord():
                info.append(f"topic {before.topics[record.topic_id].name} is deleted")
            case PartitionChangeRecord():
                warnings += warning_of(record, before)
            case _:
                pass
    return [*shown("info", info), *shown("warning", warnings)]


def warning_of(record: PartitionChangeRecord, before: Image) -> list[str]:
    old = before.partition(TopicIdPartition(record.topic_id, record.partition_id))
    assert old is not None
    name = f"{before.topics[record.topic_id].name}-{record.partition_id}"
    lines = [
        f"broker {event.replica} {'leaves' if event.replica in old.isr + old.elr else 'stays out of'} ISR and ELR of"
        f" {name}: {event.cause}"
        for event in record.withdrawals
    ]
    if is_unclean(record):
        (loss,) = record.losses
        assert record.leader != NOBODY, "somebody was elected"
        what = f"what had been acknowledged from offset {loss.start} on"
        if loss.certainty == UNKNOWN:
            what = f"what only {list(old.isr + old.elr)} had"
        return [*lines, f"unclean election ({loss.cause}): {name} is led by {record.leader}; {what} may be lost"]
    if record.leader == NOBODY:
        return [*lines, f"{name} has no leader: none of its in-sync replicas {list(record.isr or old.isr)} is alive"]
    return lines


def is_unclean(record: PartitionChangeRecord) -> bool:
    """The record says so itself, with an entry of the loss ledger (T7)."""
    return bool(record.losses)


def shown(level: str, lines: list[str]) -> list[Report]:
    assert level in ("info", "warning")
    reports = [Report(level, line) for line in lines[:SHOWN]]
    if len(lines) > SHOWN:
        reports.append(Report(level, f"and {len(lines) - SHOWN} more of this batch"))
    assert len(reports) <= SHOWN + 1
    return reports
