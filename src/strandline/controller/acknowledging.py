"""An operator acknowledges entries of the loss ledger. The ledgers are the brokers': what exists in them is not known
here, so an acknowledgement of nothing is kept too, and how many are kept is bounded."""

from strandline.base.errors import ErrorCode
from strandline.controller.basis import Basis, Plan
from strandline.metadata.acknowledgements import SEEN_RESOURCE, key_of, resource_of, value_of
from strandline.metadata.records import ConfigRecord
from strandline.wire.messages.own.acknowledge_losses import (
    ENTRIES_MAX,
    AcknowledgeLossesRequest,
    AcknowledgeLossesResponse,
)

KEPT_MAX = 100_000  # three brokers with several directories have fewer entries
NAME_MAX = 400  # what an operator calls itself, and behind that what a node knows of it


def plan_acknowledgement(request: AcknowledgeLossesRequest, basis: Basis) -> Plan:
    """Who was the first to see an entry is kept."""
    if sum(len(row.ids) for row in request.partitions) > ENTRIES_MAX:
        return refused(ErrorCode.INVALID_REQUEST, f"A request may acknowledge {ENTRIES_MAX} entries.")
    if any(row.partition < 0 for row in request.partitions):
        return refused(ErrorCode.INVALID_REQUEST, "A partition cannot be negative.")
    configs = basis.image.configs
    by = "".join(letter for letter in request.asked_by[:NAME_MAX] if letter.isprintable())
    value = value_of(by, basis.now)
    records: dict[tuple[str, str], ConfigRecord] = {}
    for row in request.partitions:
        kind, name = resource_of(row.topic_id, row.partition)
        kept = configs.get((kind, name), {})
        for key in map(key_of, row.ids):
            if key not in kept:
                records[name, key] = ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
    count = sum(len(entries) for (kind, _), entries in configs.items() if kind == SEEN_RESOURCE)
    if count + len(records) > KEPT_MAX:
        return refused(ErrorCode.POLICY_VIOLATION, f"At most {KEPT_MAX} acknowledgements are kept.")
    assert count + len(records) <= KEPT_MAX
    return Plan(tuple(records.values()), AcknowledgeLossesResponse())


def refused(error: ErrorCode, message: str) -> Plan:
    assert error is not ErrorCode.NONE
    assert message
    return Plan((), AcknowledgeLossesResponse(error_code=error, error_message=message))
