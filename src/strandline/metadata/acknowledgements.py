"""Which entries of the loss ledger an operator has seen: kept in the metadata log, so that all brokers agree.

Ledgers only grow, and an acknowledgement changes nothing in them. It is a ConfigRecord of a kind of resource that
Kafka does not have: its tools and its loader read it, as the configuration of something unknown, and nothing of it is
a setting of a topic or broker. The resource is a partition, by topic id, so that a topic that is gone keeps its own.
The key is the entry; the value says who and when.

Invariant: an entry that differs in anything, such as its time, is another entry, and nobody has seen it yet.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

import msgspec

from strandline.base.ids import Uuid, uuid_text
from strandline.wire.messages.own.describe_losses import Loss

SEEN_RESOURCE = 100  # ConfigRecord.resource_type; Kafka's are 2, 4, 8, 16 and 32
ID_BYTES = 8
# What the id of an entry is made of, and what it leaves out: the partition is in the resource's name.
IDENTITY = (
    "topic",
    "where",
    "node_id",
    "start",
    "end",
    "certainty",
    "replica",
    "old_epoch",
    "new_epoch",
    "time_ms",
    "cause",
)
OUTSIDE = ("topic_id", "partition", "acknowledged_by", "acknowledged_ms")
assert {*IDENTITY, *OUTSIDE} == set(Loss.__struct_fields__), "an entry that differs in anything is another one"

Resource = tuple[int, str]


class Seen(msgspec.Struct, frozen=True, rename="camel"):
    by: str
    time_ms: int


class Acknowledged(NamedTuple):
    by: str
    time_ms: int


def resource_of(topic_id: Uuid, partition: int) -> Resource:
    assert partition >= 0
    return SEEN_RESOURCE, f"{uuid_text(topic_id)}-{partition}"


def id_of(loss: Loss) -> int:
    """The key of an entry as a broker reports it, without its acknowledgement."""
    content = repr(tuple(getattr(loss, name) for name in IDENTITY)).encode()
    return int.from_bytes(sha256(content).digest()[:ID_BYTES], "big", signed=True)


def key_of(entry: int) -> str:
    assert -(1 << 63) <= entry < 1 << 63
    return f"{entry & 0xFFFF_FFFF_FFFF_FFFF:016x}"


def value_of(by: str, time_ms: int) -> str:
    assert time_ms >= 0, "nobody has seen it yet"
    return msgspec.json.encode(Seen(by, time_ms)).decode()


def acknowledged(configs: Mapping[Resource, Mapping[str, str]], loss: Loss) -> Acknowledged | None:
    kept = configs.get(resource_of(loss.topic_id, loss.partition))
    if kept is None:
        return None
    try:
        seen = msgspec.json.decode(kept.get(key_of(id_of(loss)), ""), type=Seen)
    except msgspec.MsgspecError:
        return None
    return Acknowledged(seen.by, seen.time_ms)
