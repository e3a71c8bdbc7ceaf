"""The records of __consumer_offsets: golden bytes, round trips, refusals."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.base.ids import Uuid
from strandline.wire.compress import Corrupt
from strandline.wire.messages.consumer_groups.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from strandline.wire.messages.groups.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

OFFSET_KEY = OffsetCommitKey(group="g", topic="t", partition=3)
GROUP_KEY = GroupMetadataKey(group="g")
OFFSET = OffsetCommitValue(offset=9, leader_epoch=4, metadata="m", commit_timestamp=1000)
GROUP = GroupMetadataValue(
    protocol_type="consumer",
    generation=5,
    protocol="range",
    leader="a",
    current_state_timestamp=77,
    members=(
        MemberMetadata(
            member_id="a",
            group_instance_id="i",
            client_id="c",
            client_host="/127.0.0.1",
            rebalance_timeout=300_000,
            session_timeout=45_000,
            subscription=b"sub",
            assignment=b"asg",
        ),
        MemberMetadata(member_id="b"),
    ),
)


def test_keys_are_kafkas_bytes() -> None:
    assert encode_key(OFFSET_KEY) == b"\x00\x01" + b"\x00\x01g" + b"\x00\x01t" + b"\x00\x00\x00\x03"
    assert encode_key(GROUP_KEY) == b"\x00\x02" + b"\x00\x01g"


def test_an_offset_is_kafkas_bytes() -> None:
    expected = "0003 0000000000000009 00000004 00016d 00000000000003e8"
    assert encode_value(OFFSET).hex() == expected.replace(" ", "")


def test_an_offset_of_version_4_names_its_topic() -> None:
    named = OffsetCommitValue(offset=9, commit_timestamp=1000, topic_id=Uuid(bytes(range(16))))
    raw = encode_value(named, 4)
    assert (
        raw.hex()
        == "0004"
        + "0000000000000009"
        + "ffffffff"
        + "01"
        + "00000000000003e8"
        + "01"
        + "00"
        + "10"
        + bytes(range(16)).hex()
    )
    assert decode_value(OFFSET_KEY, raw) == named


CLASSIC = ClassicMemberMetadata(session_timeout_ms=9, supported_protocols=(ClassicProtocol(name="r", metadata=b"m"),))


@pytest.mark.parametrize(
    ("classic", "raw"),
    [(None, "01 00"), (CLASSIC, "0c 01 00000009 02 0272 026d 00 00")],
    ids=["consumer", "classic"],
)
def test_a_member_is_kafkas_bytes(classic: ClassicMemberMetadata | None, raw: str) -> None:
    """Kafka writes that a member does not speak the classic protocol: a record without the field says that it does.
    The bytes are as in records that Kafka 3.9 wrote."""
    member = ConsumerGroupMemberMetadataValue(
        instance_id="st0",
        client_id="c",
        client_host="/127.0.0.1",
        subscribed_topic_names=("kt",),
        subscribed_topic_regex="",
        rebalance_timeout_ms=300_000,
        classic_member_metadata=classic,
    )
    expected = "0000 04737430 00 0263 0b2f3132372e302e302e31 02036b74 01 000493e0 00 01 00" + raw
    assert encode_value(member).hex() == expected.replace(" ", "")
    key = ConsumerGroupMemberMetadataKey(group="g", member_id="m")
    assert decode_value(key, encode_value(member)) == member


@pytest.mark.parametrize("key", [OFFSET_KEY, GROUP_KEY])
def test_a_key_comes_back(key: OffsetCommitKey | GroupMetadataKey) -> None:
    assert decode_key(encode_key(key)) == key


def test_the_older_prefix_of_an_offset_is_read() -> None:
    assert decode_key(b"\x00\x00" + encode_key(OFFSET_KEY)[2:]) == OFFSET_KEY


@pytest.mark.parametrize("version", [3, 4])
def test_values_come_back(version: int) -> None:
    assert decode_value(OFFSET_KEY, encode_value(OFFSET, version)) == OFFSET
    assert decode_value(GROUP_KEY, encode_value(GROUP, version)) == GROUP


@pytest.mark.parametrize("version", [0, 1, 2])
def test_older_values_are_read(version: int) -> None:
    old = decode_value(GROUP_KEY, encode_value(GROUP, version))
    assert isinstance(old, GroupMetadataValue)
    assert old.members[0].group_instance_id is None
    assert old.members[0].assignment == b"asg"
    assert old.members[0].rebalance_timeout == (300_000 if version else -1)
    committed = decode_value(OFFSET_KEY, encode_value(OFFSET, version))
    assert isinstance(committed, OffsetCommitValue)
    assert (committed.offset, committed.leader_epoch) == (9, -1)


def test_a_tombstone_has_no_value() -> None:
    assert decode_value(OFFSET_KEY, None) is None


def test_a_kind_of_another_protocol_is_skipped() -> None:
    assert decode_key(b"\x00\x0b\x00\x01g") is None  # a share group


@pytest.mark.parametrize("raw", [None, b"", b"\x00", b"\x00\x01", b"\x00\x02\x00\x05g"])
def test_a_bad_key_is_corrupt(raw: bytes | None) -> None:
    with pytest.raises(Corrupt):
        decode_key(raw)


@pytest.mark.parametrize("raw", [b"", b"\x00\x09", b"\xff\xff", encode_value(OFFSET)[:-1], encode_value(OFFSET) + b"x"])
def test_a_bad_value_is_corrupt(raw: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_value(OFFSET_KEY, raw)


@settings(max_examples=200, deadline=None)
@given(value=st.sampled_from([OFFSET, GROUP]), position=st.integers(0, 60), garbage=st.binary(max_size=20))
def test_garbage_raises_nothing_but_corrupt(value: GroupValue, position: int, garbage: bytes) -> None:
    raw = encode_value(value)
    broken = raw[:position] + garbage + raw[position + len(garbage) :]
    for key in (OFFSET_KEY, GROUP_KEY):
        with contextlib.suppress(Corrupt):
            decode_value(key, broken)
    with contextlib.suppress(Corrupt):
        decode_key(broken)
