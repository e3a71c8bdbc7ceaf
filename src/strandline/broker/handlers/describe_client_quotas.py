"""DescribeClientQuotas (KIP-546): the quotas of the entities that a filter fits, from the broker's image.

An entity fits if it has every type of the filter, each with the name that the component wants: this one, the default's,
or any. A strict filter wants no other types beside.
"""

from collections.abc import Mapping

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.broker.handlers.port import NodePort
from strandline.metadata.security.quotas import CLIENT_ID, IP, USER, QuotaEntity
from strandline.wire.messages.security.describe_client_quotas import (
    ANY,
    DEFAULT,
    EXACT,
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

E = ErrorCode
MATCH_TYPES = {EXACT: "MATCH_TYPE_EXACT", DEFAULT: "MATCH_TYPE_DEFAULT", ANY: "MATCH_TYPE_SPECIFIED"}


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del now
    request: DescribeClientQuotasRequest = received.message
    wanted: dict[str, ComponentData] = {}
    for component in request.components:
        why = why_invalid(component, wanted)
        if why is not None:
            error, message = why
            response = DescribeClientQuotasResponse(error_code=error, error_message=message, entries=None)
            return [Reply(received.to, response)]
        wanted[component.entity_type] = component
    assert len(wanted) == len(request.components), "each type once"
    entries = tuple(
        EntryData(
            entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
            values=tuple(ValueData(key=key, value=value) for key, value in quotas.items()),
        )
        for entity, quotas in node.image.quotas.items()
        if fits(entity, wanted, strict=request.strict)
    )
    return [Reply(received.to, DescribeClientQuotasResponse(entries=entries))]


def why_invalid(component: ComponentData, before: Mapping[str, ComponentData]) -> tuple[ErrorCode, str] | None:
    """`before`: the components in front of it, by type."""
    kind = component.entity_type
    if not kind:
        return E.INVALID_REQUEST, "Invalid empty entity type."
    if kind in before:
        return E.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter."
    if kind not in (IP, USER, CLIENT_ID):
        return E.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}"
    match = MATCH_TYPES.get(component.match_type)
    if match is None:
        return E.INVALID_REQUEST, f"Unknown match type {component.match_type}"
    if component.match_type == EXACT and component.match is None:
        return E.INVALID_REQUEST, f"Request specified {match}, but set match string to null."
    if component.match_type != EXACT and component.match is not None:
        return E.INVALID_REQUEST, f"Request specified {match}, but also specified a match string."
    if before and (kind == IP or IP in before):
        why = "Invalid entity filter component combination. IP filter component should not be used with user or"
        return E.INVALID_REQUEST, f"{why} clientId filter component."
    return None


def fits(entity: QuotaEntity, wanted: Mapping[str, ComponentData], *, strict: bool) -> bool:
    names = dict(entity)
    if strict and len(names) != len(wanted):
        return False
    return all(
        kind in names and (component.match_type == ANY or names[kind] == component.match)
        for kind, component in wanted.items()
    )
