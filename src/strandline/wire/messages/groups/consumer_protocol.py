"""What consumers of the classic protocol say to one another through their coordinator: subscriptions and assignments.

Each begins with an int16, its version. A newer one only adds fields behind those of the older ones, so a reader takes
what it knows (ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json). Reading raises only `Corrupt`.
"""

from typing import Annotated, TypeVar

from strandline.base.ports import Buffer
from strandline.wire.codec import decoder_of, encode_bytes
from strandline.wire.compress import Corrupt
from strandline.wire.messages.prefixed import prefixed_version
from strandline.wire.schema import (
    Group,
    Int32,
    Message,
    Nullable,
    NullableString,
    Primitive,
    String,
    V,
    message,
)

PROTOCOL_TYPE = "consumer"
NullableBytes = Annotated[Buffer | None, Primitive("bytes"), Nullable()]


class TopicPartition(Group, frozen=True):
    topic: String = ""
    partitions: tuple[Int32, ...] = ()


@message(versions="0-3")
class ConsumerProtocolSubscription(Message, frozen=True):
    topics: tuple[String, ...] = ()
    user_data: NullableBytes = None
    owned_partitions: Annotated[tuple[TopicPartition, ...], V("1+")] = ()
    generation_id: Annotated[Int32, V("2+")] = -1
    rack_id: Annotated[NullableString, V("3+")] = None


@message(versions="0-3")
class ConsumerProtocolAssignment(Message, frozen=True):
    assigned_partitions: tuple[TopicPartition, ...] = ()
    user_data: NullableBytes = None


T = TypeVar("T", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def encode_embedded(value: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    return version.to_bytes(2, "big") + encode_bytes(value, version)


def version_of(buffer: Buffer) -> int:
    """A version that is not known is read as the last one that is."""
    version = prefixed_version(buffer)
    if version < 0:
        raise Corrupt(f"version {version} of the consumer protocol is not known")
    return min(version, ConsumerProtocolSubscription.versions[-1])


def decode_embedded(cls: type[T], buffer: Buffer) -> T:
    """Any client may have written it, so the number of its items is bounded."""
    known = version_of(buffer)
    try:
        value: T = decoder_of(cls, known, True)(memoryview(buffer), 2)[0]
        return value
    except ValueError as error:
        raise Corrupt(f"{cls.__name__}: {error}") from None
