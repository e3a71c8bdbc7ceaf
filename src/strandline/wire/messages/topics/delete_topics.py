"""DeleteTopics (key 20): by name, or from version 6 on by id."""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Group,
    Int16,
    Int32,
    Message,
    Nullable,
    NullableString,
    String,
    UuidField,
    V,
    message,
)


class DeleteTopicState(Group, frozen=True):
    name: NullableString = None
    topic_id: UuidField = ZERO_UUID


@message(key=20, kind="request", versions="1-6", flexible="4+")
class DeleteTopicsRequest(Message, frozen=True):
    topics: Annotated[tuple[DeleteTopicState, ...], V("6+")] = ()
    topic_names: Annotated[tuple[String, ...], V("0-5")] = ()
    timeout_ms: Int32 = 0


class DeletableTopicResult(Group, frozen=True):
    name: Annotated[NullableString, Nullable("6+")] = ""
    topic_id: Annotated[UuidField, V("6+")] = ZERO_UUID
    error_code: Int16 = 0
    error_message: Annotated[NullableString, V("5+")] = None


@message(key=20, kind="response", versions="1-6", flexible="4+")
class DeleteTopicsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    responses: tuple[DeletableTopicResult, ...] = ()
