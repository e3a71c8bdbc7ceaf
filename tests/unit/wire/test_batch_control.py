"""Control records, against kio's schemas and kafka-python's reader."""

import contextlib
import io
import warnings
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.k_raft_version_record.v0.data import KRaftVersionRecord as KioKRaftVersion
from kio.schema.leader_change_message.v0.data import LeaderChangeMessage as KioLeaderChange
from kio.schema.snapshot_footer_record.v0.data import SnapshotFooterRecord as KioFooter
from kio.schema.snapshot_header_record.v0.data import SnapshotHeaderRecord as KioHeader
from kio.schema.voters_record.v0.data import VotersRecord as KioVoters
from kio.serial import entity_reader, entity_writer

from strandline.base.ids import Uuid
from strandline.wire.batch import read_header, why_invalid
from strandline.wire.compress import Corrupt
from strandline.wire.control import (
    Control,
    EndTxnMarker,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
    VoterEndpoint,
    VotersRecord,
    VotersRecordVoter,
    build_control,
    build_end_txn,
    control_type,
    decode_control,
    encode_control,
)
from strandline.wire.record import Record, records

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kafka.record import default_records as kafka_python

DIRECTORY = Uuid(bytes(range(16)))
KRAFT: list[tuple[Control, int, type]] = [
    (
        LeaderChangeMessage(
            leader_id=3, voters=(Voter(voter_id=1), Voter(voter_id=3)), granting_voters=(Voter(voter_id=3),)
        ),
        2,
        KioLeaderChange,
    ),
    (SnapshotHeaderRecord(last_contained_log_timestamp=1234), 3, KioHeader),
    (SnapshotFooterRecord(), 4, KioFooter),
    (KRaftVersionRecord(k_raft_version=1), 5, KioKRaftVersion),
    (
        VotersRecord(
            voters=(
                VotersRecordVoter(
                    voter_id=1,
                    voter_directory_id=DIRECTORY,
                    endpoints=(VoterEndpoint(name="CONTROLLER", host="h", port=65_535),),
                    k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
                ),
            )
        ),
        6,
        KioVoters,
    ),
]
ALL: list[Control] = [record for record, _, _ in KRAFT] + [
    EndTxnMarker(commits=True, coordinator_epoch=5),
    EndTxnMarker(commits=False, coordinator_epoch=6),
]


@pytest.mark.parametrize("record", ALL, ids=lambda record: type(record).__name__)
def test_what_is_encoded_is_decoded(record: Control) -> None:
    key, value = encode_control(record)
    assert decode_control(Record(0, 0, key, value)) == record


@pytest.mark.parametrize(("record", "kind", "theirs"), KRAFT, ids=lambda x: getattr(x, "__name__", ""))
def test_kio_agrees(record: Control, kind: int, theirs: type) -> None:
    key, value = encode_control(record)
    assert key == bytes([0, 0, 0, kind])
    entity, size = entity_reader(theirs)(value, 0)
    assert size == len(value)
    out = io.BytesIO()
    entity_writer(theirs)(out, entity)
    assert out.getvalue() == value


def test_kio_sees_the_same_voters() -> None:
    entity, _ = entity_reader(KioVoters)(encode_control(KRAFT[4][0])[1], 0)
    (voter,) = entity.voters
    assert (voter.voter_id, voter.voter_directory_id) == (1, UUID(bytes=DIRECTORY))
    assert (voter.endpoints[0].name, voter.endpoints[0].port) == ("CONTROLLER", 65_535)
    assert voter.k_raft_version_feature.max_supported_version == 1


def test_a_leader_change_of_version_1_names_directories() -> None:
    change = LeaderChangeMessage(version=1, leader_id=1, voters=(Voter(voter_id=1, voter_directory_id=DIRECTORY),))
    key, value = encode_control(change)
    assert decode_control(Record(0, 0, key, value)) == change


def test_a_control_batch_holds_its_records() -> None:
    batch = build_control(ALL[1:3], timestamp=5, base_offset=40, leader_epoch=2)
    header = read_header(batch)
    assert why_invalid(header, batch) is None
    assert (header.is_control, header.is_transactional, header.has_producer_id) == (True, False, False)
    assert (header.base_offset, header.partition_leader_epoch) == (40, 2)
    assert [decode_control(record) for record in records(header, batch)] == ALL[1:3]


@pytest.mark.parametrize("commits", [True, False])
def test_kafka_python_sees_the_end_of_a_transaction(commits: bool) -> None:
    batch = build_end_txn(EndTxnMarker(commits, 5), timestamp=9, producer_id=7, producer_epoch=1)
    theirs = kafka_python.DefaultRecordBatch(batch)
    assert (theirs.is_control_batch, theirs.is_transactional, theirs.producer_id, theirs.base_sequence) == (
        True,
        True,
        7,
        -1,
    )
    (record,) = theirs
    assert (record.commit, record.abort) == (commits, not commits)


def test_a_newer_type_is_skipped() -> None:
    assert decode_control(Record(0, 0, b"\x00\x00\x00\x63", b"\x00\x00")) is None


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x01", b"\x00\x00\xff\xff"])
def test_a_bad_key_is_corrupt(key: bytes | None) -> None:
    with pytest.raises(Corrupt):
        control_type(key)


@settings(max_examples=200, deadline=None)
@given(kind=st.integers(0, 8), value=st.none() | st.binary(max_size=60))
def test_garbage_raises_nothing_but_corrupt(kind: int, value: bytes | None) -> None:
    with contextlib.suppress(Corrupt):
        decode_control(Record(0, 0, bytes([0, 0, 0, kind]), value))
