"""Quotas of clients as metadata (KIP-546): which entities there are, and which quotas each may have.

An entity is a user, a client id, both together, or an address. Each of them may be a default, which has no name.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from strandline.metadata.security.records import ClientQuotaRecord, EntityData

USER, CLIENT_ID, IP = "user", "client-id", "ip"

QuotaEntity = tuple[tuple[str, str | None], ...]  # (type, name) by type; a name None is the default

PRODUCER_BYTE_RATE = "producer_byte_rate"  # bytes a second
CONSUMER_BYTE_RATE = "consumer_byte_rate"  # bytes a second
REQUEST_PERCENTAGE = "request_percentage"  # of one thread's time
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"  # partitions created or deleted, a second
CONNECTION_CREATION_RATE = "connection_creation_rate"  # connections a second

LONG, INT, DOUBLE = "LONG", "INT", "DOUBLE"
CLIENT_KEYS: Mapping[str, str] = {  # of users and client ids, by the types that Kafka gives their values
    PRODUCER_BYTE_RATE: LONG,
    CONSUMER_BYTE_RATE: LONG,
    REQUEST_PERCENTAGE: DOUBLE,
    CONTROLLER_MUTATION_RATE: DOUBLE,
}
IP_KEYS: Mapping[str, str] = {CONNECTION_CREATION_RATE: INT}
LARGEST = {LONG: float((1 << 63) - 1), INT: float((1 << 31) - 1)}


def entity_of(parts: Iterable[Any]) -> QuotaEntity:
    """Of what has `entity_type` and `entity_name`."""
    pairs = [(part.entity_type, part.entity_name) for part in parts]
    return tuple(sorted(pairs, key=lambda pair: pair[0]))


def quota_record(entity: QuotaEntity, key: str, value: float | None) -> ClientQuotaRecord:
    """None removes the quota."""
    assert entity, "a quota has an entity"
    parts = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
    return ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None)
