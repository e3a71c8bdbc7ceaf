"""Metadata records: golden bytes, round trips, and what is refused."""

import contextlib
from typing import get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each

from strandline.base.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.framing import WRITTEN, decode_record, encode_record
from strandline.metadata.security.records import EntityData
from strandline.wire.compress import Corrupt
from strandline.wire.schema import Message

TOPIC = Uuid(bytes(range(16)))
DIRECTORY = Uuid(bytes(range(16, 32)))

FULL: tuple[Message, ...] = (
    r.RegisterBrokerRecord(
        broker_id=4,
        incarnation_id=TOPIC,
        broker_epoch=77,
        end_points=(r.BrokerEndpoint(name="PLAINTEXT", host="h", port=65_535, security_protocol=0),),
        features=(r.BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=27),),
        rack="r",
        fenced=False,
        in_controlled_shutdown=True,
        log_dirs=(DIRECTORY,),
        cordoned_log_dirs=(DIRECTORY,),
    ),
    r.UnregisterBrokerRecord(broker_id=4, broker_epoch=77),
    r.TopicRecord(name="foo", topic_id=TOPIC),
    r.PartitionRecord(
        partition_id=2,
        topic_id=TOPIC,
        replicas=(1, 2, 3),
        isr=(1,),
        removing_replicas=(3,),
        adding_replicas=(4,),
        leader=1,
        leader_recovery_state=1,
        leader_epoch=9,
        partition_epoch=10,
        directories=(DIRECTORY, DIRECTORY, TOPIC),
        eligible_leader_replicas=(2,),
        last_known_elr=(),
    ),
    r.ConfigRecord(resource_type=2, resource_name="foo", name="min.insync.replicas", value="2"),
    r.PartitionChangeRecord(
        partition_id=2,
        topic_id=TOPIC,
        isr=(),
        leader=-1,
        replicas=(1, 2),
        removing_replicas=(),
        adding_replicas=(2,),
        leader_recovery_state=0,
        directories=(TOPIC, DIRECTORY),
        eligible_leader_replicas=(1,),
        last_known_elr=(2,),
    ),
    r.RemoveTopicRecord(topic_id=TOPIC),
    r.FeatureLevelRecord(name="kraft.version", feature_level=1),
    r.ProducerIdsRecord(broker_id=1, broker_epoch=77, next_producer_id=1000),
    r.BrokerRegistrationChangeRecord(
        broker_id=4, broker_epoch=77, fenced=-1, in_controlled_shutdown=1, log_dirs=(DIRECTORY,), cordoned_log_dirs=()
    ),
    r.AccessControlEntryRecord(
        id=TOPIC,
        resource_type=2,
        resource_name="foo",
        pattern_type=4,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=2,
    ),
    r.RemoveAccessControlEntryRecord(id=TOPIC),
    r.NoOpRecord(),
    r.BeginTransactionRecord(name="bootstrap"),
    r.EndTransactionRecord(),
    r.AbortTransactionRecord(reason="failed"),
    r.RegisterControllerRecord(
        controller_id=3000,
        incarnation_id=TOPIC,
        zk_migration_ready=True,
        end_points=(r.ControllerEndpoint(name="CONTROLLER", host="h", port=9093, security_protocol=0),),
        features=(r.ControllerFeature(name="metadata.version", min_supported_version=7, max_supported_version=27),),
    ),
    r.ClearElrRecord(topic_name="foo"),
    r.UserScramCredentialRecord(
        name="alice", mechanism=2, salt=b"s", stored_key=b"k" * 64, server_key=b"v" * 64, iterations=4096
    ),
    r.RemoveUserScramCredentialRecord(name="alice", mechanism=1),
    r.ClientQuotaRecord(
        entity=(EntityData("user", "alice"), EntityData("client-id", None)), key="request_percentage", value=0.1
    ),
)

# Written by hand from the schema: frame 1, record, version, fields, number of tagged fields, tagged fields.
GOLDEN = [
    (r.NoOpRecord(), "01 14 00 00"),
    (r.FeatureLevelRecord(name="ab", feature_level=27), "01 0c 00 03 6162 001b 00"),
    (r.TopicRecord(name="foo", topic_id=TOPIC), "01 02 00 04 666f6f" + TOPIC.hex() + "00"),
    (r.ConfigRecord(resource_type=2, resource_name="t", name="k", value=None), "01 04 00 02 0274 026b 00 00"),
    (r.UnregisterBrokerRecord(broker_id=4, broker_epoch=77), "01 01 00 00000004 000000000000004d 00"),
    (
        r.PartitionRecord(
            partition_id=1, topic_id=TOPIC, replicas=(1, 2), isr=(1,), leader=1, leader_epoch=0, partition_epoch=3
        ),
        "01 03 02 00000001" + TOPIC.hex() + "03 00000001 00000002 02 00000001 01 01 00000001 00000000 00000003 01 00",
    ),
    (
        r.PartitionRecord(partition_id=0, topic_id=TOPIC, eligible_leader_replicas=(5,), last_known_elr=(6,)),
        "01 03 02 00000000"
        + TOPIC.hex()
        + "01 01 01 01 ffffffff ffffffff ffffffff 01 02 01 05 02 00000005 02 05 02 00000006",
    ),
    (r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC), "01 05 02 00000000" + TOPIC.hex() + "00"),
    (
        r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(), leader=-1, leader_recovery_state=1),
        "01 05 02 00000000" + TOPIC.hex() + "03 00 01 01 01 04 ffffffff 05 01 01",
    ),
    (
        r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, directories=(DIRECTORY,), last_known_elr=(7,)),
        "01 05 02 00000000" + TOPIC.hex() + "02 07 05 02 00000007 08 11 02" + DIRECTORY.hex(),
    ),
    (
        r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, fenced=-1),
        "01 11 03 00000001 0000000000000002 01 00 01 ff",
    ),
    (
        r.RegisterBrokerRecord(broker_id=1, incarnation_id=TOPIC, broker_epoch=2, rack=None, log_dirs=(DIRECTORY,)),
        "01 00 04 00000001 00" + TOPIC.hex() + "0000000000000002 01 01 00 01 00 01 00 11 02" + DIRECTORY.hex(),
    ),
    (
        r.UserScramCredentialRecord(
            name="al", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"vw", iterations=4096
        ),
        "01 0b 00 03 616c 01 02 73 02 6b 03 7677 00001000 00",
    ),
    (r.RemoveUserScramCredentialRecord(name="al", mechanism=2), "01 16 00 03 616c 02 00"),
    (
        r.ClientQuotaRecord(entity=(EntityData("ip", None),), key="k", value=1.5),
        "01 0e 00 02 03 6970 00 00 02 6b 3ff8000000000000 00 00",
    ),
    (r.ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=3), "01 0f 00 00000001" + f"{2:016x}{3:016x}00"),
    (
        r.AccessControlEntryRecord(
            id=TOPIC,
            resource_type=2,
            resource_name="t",
            pattern_type=3,
            principal="U:a",
            host="*",
            operation=4,
            permission_type=3,
        ),
        "01 12 00" + TOPIC.hex() + "02 0274 03 04 553a61 022a 04 03 00",
    ),
    (r.RemoveAccessControlEntryRecord(id=TOPIC), "01 13 00" + TOPIC.hex() + "00"),
]


@each(("record", "expected"), GOLDEN, ids=lambda x: type(x).__name__ if isinstance(x, Message) else "")
def test_bytes_are_those_of_the_schema(record: Message, expected: str) -> None:
    assert encode_record(record).hex() == expected.replace(" ", "")
    assert decode_record(bytes.fromhex(expected)) == record


@each("record", FULL, ids=lambda record: type(record).__name__)
def test_every_field_comes_back(record: Message) -> None:
    assert decode_record(memoryview(encode_record(record))) == record


@each("record", FULL, ids=lambda record: type(record).__name__)
def test_every_version_is_read(record: Message) -> None:
    for version in record.versions:
        assert type(decode_record(encode_record(record, version))) is type(record)


def test_all_kinds_are_covered() -> None:
    assert {type(record) for record in FULL} == set(r.RECORDS)
    declared = {cls for cls in vars(r).values() if isinstance(cls, type) and issubclass(cls, Message)} - {Message}
    assert declared == set(r.RECORDS)
    assert len({cls.api_key for cls in r.RECORDS}) == len(r.RECORDS)
    assert all(get_type_hints(cls) for cls in r.RECORDS)


def test_written_versions_are_those_of_4_3() -> None:
    above_0 = {cls.__name__: version for cls, version in WRITTEN.items() if version}
    assert above_0 == {
        "RegisterBrokerRecord": 4,
        "PartitionRecord": 2,
        "PartitionChangeRecord": 2,
        "BrokerRegistrationChangeRecord": 3,
    }


def test_what_a_version_lacks_is_left_out() -> None:
    old = decode_record(encode_record(FULL[3], 0))
    assert isinstance(old, r.PartitionRecord)
    assert (old.directories, old.eligible_leader_replicas, old.last_known_elr) == ((), None, None)
    assert old.replicas == (1, 2, 3)


@pytest.mark.parametrize(
    "text", ["", "01", "0114", "02140000", "007f", "01 63 00 00", "01 14 07 00", "01 02 00 04 66", "01ff"]
)
def test_what_is_no_record_is_corrupt(text: str) -> None:
    with pytest.raises(Corrupt):
        decode_record(bytes.fromhex(text))


def test_null_is_corrupt() -> None:
    with pytest.raises(Corrupt):
        decode_record(None)


@each("record", FULL, ids=lambda record: type(record).__name__)
def test_a_cut_off_record_is_corrupt(record: Message) -> None:
    whole = encode_record(record)
    for size in range(len(whole)):
        with pytest.raises(Corrupt):
            decode_record(whole[:size])


@settings(max_examples=300, deadline=None)
@given(which=st.sampled_from(FULL), position=st.integers(3, 60), garbage=st.binary(max_size=20))
def test_garbage_raises_nothing_but_corrupt(which: Message, position: int, garbage: bytes) -> None:
    whole = encode_record(which)
    with contextlib.suppress(Corrupt):
        decode_record(whole[:position] + garbage + whole[position + len(garbage) :])
