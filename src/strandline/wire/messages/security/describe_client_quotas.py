"""DescribeClientQuotas (key 48): the quotas of users, client ids and addresses, filtered (KIP-546)."""

from typing import Annotated

from strandline.wire.schema import (
    Bool,
    Float64,
    Group,
    Int8,
    Int16,
    Int32,
    Message,
    Nullable,
    NullableString,
    String,
    message,
)

EXACT, DEFAULT, ANY = 0, 1, 2  # ComponentData.match_type


class ComponentData(Group, frozen=True):
    entity_type: String = ""
    match_type: Int8 = 0
    match: NullableString = None


@message(key=48, kind="request", versions="0-1", flexible="1+")
class DescribeClientQuotasRequest(Message, frozen=True):
    components: tuple[ComponentData, ...] = ()
    strict: Bool = False  # no entity of other types than those of the components


class EntityData(Group, frozen=True):
    entity_type: String = ""
    entity_name: NullableString = None  # null: the default of this type


class ValueData(Group, frozen=True):
    key: String = ""
    value: Float64 = 0.0


class EntryData(Group, frozen=True):
    entity: tuple[EntityData, ...] = ()
    values: tuple[ValueData, ...] = ()


@message(key=48, kind="response", versions="0-1", flexible="1+")
class DescribeClientQuotasResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
    entries: Annotated[tuple[EntryData, ...] | None, Nullable()] = ()
