"""Quotas of users, client ids and addresses: describe and change (KIP-546)."""

from collections.abc import Mapping

from strandline.base.errors import ErrorCode
from strandline.client.ask import Servers, ask_any
from strandline.client.errors import refused
from strandline.metadata.security.quotas import QuotaEntity, entity_of
from strandline.wire.messages.security.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from strandline.wire.messages.security.describe_client_quotas import (
    ANY,
    DEFAULT,
    EXACT,
    ComponentData,
    DescribeClientQuotasRequest,
)

VERSION = 1
ANY_NAME = object()


def component(kind: str, name: str | object | None) -> ComponentData:
    """`name`: None for the default, ANY_NAME for any."""
    if isinstance(name, str):
        return ComponentData(kind, EXACT, name)
    return ComponentData(kind, DEFAULT if name is None else ANY)


def quotas_of(
    bootstrap: Servers, *components: ComponentData, strict: bool = True
) -> dict[QuotaEntity, dict[str, float]]:
    """Of the entities that fit; strict: that have no other types beside."""
    request = DescribeClientQuotasRequest(components=components, strict=strict)
    answer = ask_any(bootstrap, request, VERSION)
    found = {entity_of(row.entity): {value.key: value.value for value in row.values} for row in answer.entries or ()}
    return dict(sorted(found.items(), key=lambda item: [(kind, name or "") for kind, name in item[0]]))


def alter_quotas(
    bootstrap: Servers, entity: QuotaEntity, changes: Mapping[str, float | None], *, validate_only: bool = False
) -> None:
    """None removes a quota. Raises KafkaError if the cluster refuses the change."""
    assert entity
    entry = EntryData(
        entity=tuple(EntityData(kind, name) for kind, name in entity),
        ops=tuple(OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes.items()),
    )
    request = AlterClientQuotasRequest(entries=(entry,), validate_only=validate_only)
    (result,) = ask_any(bootstrap, request, VERSION).entries
    if result.error_code != ErrorCode.NONE:
        raise refused(result.error_code, "the quotas", result.error_message)
