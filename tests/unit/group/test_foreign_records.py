"""Records of groups that another writer has written: a client that calls itself Kafka's tool may do that."""

from typing import Any

import pytest
from tests.unit.group.coordination import Coordination

from strandline.base.time import Instant
from strandline.group.offsets.offsets import batch_of
from strandline.wire.messages.groups.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata


def loaded(**fields: Any) -> Coordination:
    """A coordinator that finds such a group."""
    members = tuple(
        MemberMetadata(member_id=member_id, group_instance_id=instance, session_timeout=30_000, subscription=b"s")
        for member_id, instance in fields.pop("members", (("a", None), ("b", None)))
    )
    sound = {"protocol_type": "consumer", "generation": 7, "protocol": "range", "leader": "a", "members": members}
    c = Coordination()
    record = GroupMetadataKey(group="g"), GroupMetadataValue(**{**sound, **fields})
    c.log.batches.append(bytes(batch_of([record], Instant(c.now))))
    c.fail_over()
    return c


@pytest.mark.parametrize(
    "fields",
    [
        {"generation": 0},
        {"generation": -1},
        {"protocol": None},
        {"members": (("", None), ("b", None))},
        {"members": (("a", None), ("a", None))},
        {"members": (("a", "i"), ("b", "i"))},
    ],
    ids=str,
)
def test_a_group_that_cannot_be_is_left_out(fields: dict[str, Any]) -> None:
    c = loaded(**fields)
    assert (c.shard.groups, c.shard.unreadable) == ({}, 1)
    for member_id in ("", "a", "b"):
        for name in ("range", ""):
            c.join(member_id, protocols={name: b"s"})
            c.join(member_id, protocols={name: b"s"}, group_instance_id="i")
    c.wait(120_000)


def test_a_group_that_can_be_goes_on() -> None:
    c = loaded()
    assert list(c.group.members) == ["a", "b"]
    assert c.joined(c.join("b", protocols={"range": b"s"})).generation_id == 7
