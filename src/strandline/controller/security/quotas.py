"""AlterClientQuotas (KIP-546): each entity's changes succeed or fail together, and other entities' alone.

A quota that has its value already is not written again, and what is removed although it is not set is not written.
"""

from collections.abc import Mapping
from ipaddress import ip_address

from strandline.base.errors import ErrorCode, message_of
from strandline.controller.basis import Basis, Plan, Refusal
from strandline.metadata.records import ClientQuotaRecord
from strandline.metadata.security.quotas import (
    CLIENT_ID,
    CLIENT_KEYS,
    DOUBLE,
    IP,
    IP_KEYS,
    LARGEST,
    USER,
    QuotaEntity,
    entity_of,
    quota_record,
)
from strandline.wire.messages.security.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    EntryDataResponse,
)

E = ErrorCode
RECORDS_MAX = 10_000  # of a request: all of it is one batch of the metadata log
NAME_MAX = 1024  # bytes
FRACTION = 1e-6  # a whole number may be so far from one


def plan_alter_quotas(request: AlterClientQuotasRequest, basis: Basis) -> Plan:
    outcomes: dict[QuotaEntity, Refusal | list[ClientQuotaRecord]] = {}
    is_excessive = sum(len(entry.ops) for entry in request.entries) > RECORDS_MAX
    for entry in request.entries:
        entity = entity_of(entry.entity)
        if is_excessive:
            outcomes[entity] = Refusal(E.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
        elif entity in outcomes:
            outcomes[entity] = Refusal(E.INVALID_REQUEST, f"Ignoring duplicate entity {shown(entity)}")
        else:
            outcomes[entity] = why_no_entity(entity) or changes_of(entity, entry, basis)
    records = [record for outcome in outcomes.values() if isinstance(outcome, list) for record in outcome]
    results = tuple(result_of(entity, outcome) for entity, outcome in outcomes.items())
    assert len(records) <= RECORDS_MAX
    return Plan(() if request.validate_only else tuple(records), AlterClientQuotasResponse(entries=results))


def result_of(entity: QuotaEntity, outcome: Refusal | list[ClientQuotaRecord]) -> EntryDataResponse:
    return EntryDataResponse(
        error_code=outcome.error if isinstance(outcome, Refusal) else E.NONE,
        error_message=outcome.message if isinstance(outcome, Refusal) else None,
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
    )


def shown(entity: QuotaEntity) -> str:
    """As Kafka writes it in its messages."""
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def why_no_entity(entity: QuotaEntity) -> Refusal | None:
    kinds = [kind for kind, _ in entity]
    why = "Invalid empty client quota entity" if not entity else None
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            why = f"Unhandled client quota entity type: {kind}"
        elif kinds.count(kind) > 1:
            why = f"Invalid client quota entity, duplicate entity entry {kind}"
        elif name == "":
            why = f"Empty {kind} not supported"
        elif name is not None and len(name.encode()) > NAME_MAX:
            why = f"The {kind} must not be longer than {NAME_MAX} bytes"
        elif kind == IP and len(entity) > 1:
            why = "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
        elif kind == IP and not (name is None or is_address(name)):
            why = f"{name} is not a valid IP or resolvable host."
        if why is not None:
            break
    return None if why is None else Refusal(E.INVALID_REQUEST, why)


def is_address(name: str) -> bool:
    """A host's name is not: nodes would have to ask somebody which address it has."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def changes_of(entity: QuotaEntity, entry: EntryData, basis: Basis) -> Refusal | list[ClientQuotaRecord]:
    assert entity, "refused before"
    keys = IP_KEYS if entity[0][0] == IP else CLIENT_KEYS
    current = basis.image.quotas.get(entity, {})
    records: list[ClientQuotaRecord] = []
    seen: set[str] = set()
    for op in entry.ops:
        if op.key in seen:
            why = f"Duplicate quota key {op.key} not updating quota for this entity {shown(entity)}"
            return Refusal(E.INVALID_REQUEST, why)
        seen.add(op.key)
        invalid = None if op.remove else why_not_a_quota(keys, op.key, op.value)
        if invalid is not None:
            return Refusal(E.INVALID_REQUEST, invalid)
        value = None if op.remove else op.value
        if value != current.get(op.key):
            records.append(quota_record(entity, op.key, value))
    return records


def why_not_a_quota(keys: Mapping[str, str], key: str, value: float) -> str | None:
    kind = keys.get(key)
    if kind is None:
        return f"Invalid configuration key {key}"
    if not value > 0:  # nor is NaN
        return f"Quota {key} must be greater than 0"
    if kind == DOUBLE:
        return None
    if value > LARGEST[kind]:
        return f"Proposed value for {key} is too large for {'an INT' if kind == 'INT' else 'a LONG'}."
    return f"{key} cannot be a fractional value." if value % 1.0 > FRACTION else None


def refuse_alter_quotas(request: AlterClientQuotasRequest, error: ErrorCode) -> AlterClientQuotasResponse:
    assert error is not ErrorCode.NONE
    return AlterClientQuotasResponse(
        entries=tuple(
            EntryDataResponse(error_code=error, error_message=message_of(error), entity=entry.entity)
            for entry in request.entries
        )
    )
