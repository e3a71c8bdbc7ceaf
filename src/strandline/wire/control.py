"""Control records: what a log says about itself rather than about its subject.

A control batch has records whose key is (version, type). End markers of transactions lie in any partition's log; the
others, KRaft's, only in the metadata log and its snapshots (KIP-595, KIP-630, KIP-853).

Bytes are checked by `decode_control`, which raises `Corrupt` and nothing else. Types that we do not know are not an
error: readers skip them, so that a newer log can be read.
"""

from enum import IntEnum
from struct import Struct as Layout
from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.base.ports import Buffer
from strandline.wire.batch import Draft, build, read_header
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.compress import Corrupt
from strandline.wire.record import Record, records
from strandline.wire.schema import Group, Int16, Int32, Int64, Message, String, Tag, UInt16, UuidField, V, message

KEY = Layout(">hh")  # version, type
END_TXN = Layout(">hi")  # version, coordinator epoch


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class Voter(Group, frozen=True):
    voter_id: Int32 = 0
    voter_directory_id: Annotated[UuidField, V("1+")] = ZERO_UUID


@message(versions="0-1", flexible="0+")
class LeaderChangeMessage(Message, frozen=True):
    """The first record of a leader's epoch."""

    version: Int16 = 0
    leader_id: Int32 = 0
    voters: tuple[Voter, ...] = ()
    granting_voters: tuple[Voter, ...] = ()


@message(versions="0", flexible="0+")
class SnapshotHeaderRecord(Message, frozen=True):
    """The first record of a snapshot."""

    version: Int16 = 0
    last_contained_log_timestamp: Int64 = 0
    # Ours: the end offset that the snapshot's name must have, so that a file with another's name is no snapshot.
    end_offset: Annotated[Int64, Tag(10_000)] = -1


@message(versions="0", flexible="0+")
class SnapshotFooterRecord(Message, frozen=True):
    """The last record of a snapshot; without it the snapshot is not complete."""

    version: Int16 = 0


@message(versions="0", flexible="0+")
class KRaftVersionRecord(Message, frozen=True):
    """The level of the kraft.version feature."""

    version: Int16 = 0
    k_raft_version: Int16 = 0


class VoterEndpoint(Group, frozen=True):
    name: String = ""
    host: String = ""
    port: UInt16 = 0


class KRaftVersionFeature(Group, frozen=True):
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


class VotersRecordVoter(Group, frozen=True):
    voter_id: Int32 = 0
    voter_directory_id: UuidField = ZERO_UUID
    endpoints: tuple[VoterEndpoint, ...] = ()
    k_raft_version_feature: KRaftVersionFeature = KRaftVersionFeature()


@message(versions="0", flexible="0+")
class VotersRecord(Message, frozen=True):
    """The whole set of voters."""

    version: Int16 = 0
    voters: tuple[VotersRecordVoter, ...] = ()


class EndTxnMarker(Message, frozen=True):
    """The end of a producer's transaction in this partition; `commits` is the record's type."""

    commits: bool
    coordinator_epoch: int


Kraft = LeaderChangeMessage | SnapshotHeaderRecord | SnapshotFooterRecord | KRaftVersionRecord | VotersRecord
Control = Kraft | EndTxnMarker

TYPE_OF: dict[type[Kraft], ControlType] = {
    LeaderChangeMessage: ControlType.LEADER_CHANGE,
    SnapshotHeaderRecord: ControlType.SNAPSHOT_HEADER,
    SnapshotFooterRecord: ControlType.SNAPSHOT_FOOTER,
    KRaftVersionRecord: ControlType.KRAFT_VERSION,
    VotersRecord: ControlType.KRAFT_VOTERS,
}
CLASS_OF: dict[int, type[Kraft]] = {int(kind): cls for cls, kind in TYPE_OF.items()}
assert len(CLASS_OF) == len(TYPE_OF), "a type has one class"


def control_type(key: Buffer | None) -> int:
    """The type in a control record's key, one of `ControlType` or a newer number. Raises `Corrupt`."""
    if key is None or len(key) < KEY.size:
        raise Corrupt("a control record needs a version and a type as its key")
    version, kind = KEY.unpack_from(key)
    if version < 0 or kind < 0:
        raise Corrupt(f"a control record of version {version} and type {kind}")
    return int(kind)


def encode_control(record: Control) -> tuple[bytes, bytes]:
    """Key and value."""
    if isinstance(record, EndTxnMarker):
        kind = ControlType.COMMIT if record.commits else ControlType.ABORT
        return KEY.pack(0, kind), END_TXN.pack(0, record.coordinator_epoch)
    assert record.version in record.versions
    return KEY.pack(0, TYPE_OF[type(record)]), encode_bytes(record, record.version)


def decode_control(record: Record) -> Control | None:
    """What a control record says; None if its type is newer than this program. Raises `Corrupt`."""
    kind, value = control_type(record.key), record.value
    if value is None or len(value) < 2:
        raise Corrupt("a control record without a value")
    if kind in (ControlType.ABORT, ControlType.COMMIT):
        if len(value) < END_TXN.size:
            raise Corrupt("the end marker of a transaction is cut off")
        return EndTxnMarker(kind == ControlType.COMMIT, END_TXN.unpack_from(value)[1])
    cls = CLASS_OF.get(kind)
    if cls is None:
        return None
    version = int.from_bytes(value[:2], "big", signed=True)
    try:
        decoded: Kraft = decode_all(cls, min(max(version, 0), cls.versions[-1]), value)
    except ValueError as error:
        raise Corrupt(f"{cls.__name__}: {error}") from None
    return decoded


def build_control(records: list[Control], *, timestamp: int, base_offset: int, leader_epoch: int) -> bytes:
    """A control batch of KRaft records."""
    assert records, "a batch has a record"
    assert not any(isinstance(record, EndTxnMarker) for record in records), "`build_end_txn` has the producer's id"
    drafts: list[Draft] = [(timestamp, *encode_control(record), ()) for record in records]
    return build(drafts, base_offset=base_offset, leader_epoch=leader_epoch, control=True)


def build_end_txn(
    marker: EndTxnMarker, *, timestamp: int, producer_id: int, producer_epoch: int, leader_epoch: int = -1
) -> bytes:
    """The batch that ends a producer's transaction: transactional, control, without a sequence."""
    assert producer_id >= 0 and producer_epoch >= 0, "a transaction has a producer"
    return build(
        [(timestamp, *encode_control(marker), ())],
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def read_marker(batch: Buffer) -> EndTxnMarker | None:
    """The end of a transaction that the control batch at the buffer's beginning holds; None if it holds none."""
    header = read_header(batch)
    assert header.is_control
    try:
        found = next(records(header, batch), None)
        said = None if found is None else decode_control(found)
    except Corrupt:
        return None
    return said if isinstance(said, EndTxnMarker) else None
