"""AlterClientQuotas (key 49): set and remove the quotas of users, client ids and addresses (KIP-546)."""

from strandline.wire.schema import Bool, Float64, Group, Int16, Int32, Message, NullableString, String, message


class EntityData(Group, frozen=True):
    entity_type: String = ""
    entity_name: NullableString = None  # null: the default of this type


class OpData(Group, frozen=True):
    key: String = ""
    value: Float64 = 0.0  # ignored if it is removed
    remove: Bool = False


class EntryData(Group, frozen=True):
    entity: tuple[EntityData, ...] = ()
    ops: tuple[OpData, ...] = ()


@message(key=49, kind="request", versions="0-1", flexible="1+")
class AlterClientQuotasRequest(Message, frozen=True):
    entries: tuple[EntryData, ...] = ()
    validate_only: Bool = False


class EntryDataResponse(Group, frozen=True):
    error_code: Int16 = 0
    error_message: NullableString = None
    entity: tuple[EntityData, ...] = ()


@message(key=49, kind="response", versions="0-1", flexible="1+")
class AlterClientQuotasResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    entries: tuple[EntryDataResponse, ...] = ()
