"""However a load is cut into steps, and whatever happens between them: a coordinator that serves knows what its log
says, read naively in one go, but for markers of its own time that are not committed yet."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.group.coordination import Coordination

from strandline.base.errors import ErrorCode
from strandline.base.ids import LeaderEpoch
from strandline.base.time import Instant
from strandline.group.classic.group import Group
from strandline.group.consumer.member import Member
from strandline.group.consumer.stored import member_record, member_tombstones, metadata_record
from strandline.group.offsets.offsets import CommittedOffset, batch_of, offset_record
from strandline.group.shards.shard import Shard
from strandline.wire.batch import build, read_header
from strandline.wire.compress import Corrupt
from strandline.wire.control import EndTxnMarker, build_end_txn, decode_control
from strandline.wire.messages.consumer_groups.records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from strandline.wire.messages.groups.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
    encode_key,
)
from strandline.wire.record import records

NOW = Instant(1_000_000)
JUNK = [(None, b"v"), (b"\0\x63", b"v"), (b"\0", None), (encode_key(OffsetCommitKey(group="g0", topic="t")), b"\0\4\1")]

producers, commits = st.integers(1, 2), st.booleans()
keys = st.tuples(st.sampled_from(["g0", "g1"]), st.integers(0, 1))
texts = st.sampled_from(["", "note", "ö", "x" * 200])
written = st.one_of(
    st.tuples(st.just("commit"), keys, texts),
    *[st.tuples(st.just("pending"), producers, keys)] * 5,
    st.tuples(st.just("marker"), producers, commits),
    st.tuples(st.just("tombstone"), keys, st.just(0)),
    st.tuples(st.just("tombstone"), keys, producers),
    st.tuples(st.just("group"), st.sampled_from(["g0", "g1"]), st.integers(-1, 3)),
    *[st.tuples(st.just(kind), st.sampled_from(["g0", "g1"]), st.none()) for kind in ("full", "ungroup", "unconsume")],
    *[st.tuples(st.just(kind), st.sampled_from(["g0", "g1"]), st.integers(0, 2)) for kind in ("consume", "come", "go")],
    st.tuples(st.just("junk"), st.sampled_from(JUNK), st.none()),
)
events = st.one_of(
    *[st.tuples(st.just("step"), st.none(), st.none())] * 2,
    *[st.tuples(st.just("marker"), producers, commits)] * 3,
    *[st.tuples(st.just("committed"), st.none(), st.none())] * 3,
    *[st.tuples(st.just("elsewhere"), written, st.none())] * 2,
    *[st.tuples(st.just("lead"), st.booleans(), st.none())] * 2,
    st.tuples(st.just("damage"), st.booleans(), st.none()),
)


def batch(kind: str, what: Any, more: Any, number: int) -> bytes:
    match kind:
        case "commit":
            row = offset_record(what[0], "t", what[1], CommittedOffset(number, number % 3, more, NOW))
            return bytes(batch_of([row], NOW))
        case "pending":
            row = offset_record(more[0], "t", more[1], CommittedOffset(number, 0, "", NOW, b"i" * 16))  # type: ignore[arg-type]
            return bytes(batch_of([row], NOW, (what, 0)))
        case "marker":
            return build_end_txn(EndTxnMarker(more, 0), timestamp=NOW, producer_id=what, producer_epoch=0)
        case "tombstone":
            key = OffsetCommitKey(group=what[0], topic="t", partition=what[1])
            return bytes(batch_of([(key, None)], NOW, (more, 0) if more else None))
        case "group":
            return bytes(batch_of([(GroupMetadataKey(group=what), GroupMetadataValue(generation=more))], NOW))
        case "full":
            members = (MemberMetadata(member_id="m", session_timeout=10_000, rebalance_timeout=60_000),)
            value = GroupMetadataValue(protocol_type="consumer", generation=5, protocol="range", members=members)
            return bytes(batch_of([(GroupMetadataKey(group=what), value)], NOW))
        case "consume":
            return bytes(batch_of([metadata_record(what, more, 0)], NOW))
        case "unconsume":
            return bytes(batch_of([(ConsumerGroupMetadataKey(group=what), None)], NOW))
        case "come":
            return bytes(batch_of([member_record(what, Member(f"m{more}"))], NOW))
        case "go":
            return bytes(batch_of(member_tombstones(what, f"m{more}"), NOW))
        case "ungroup":
            return bytes(batch_of([(GroupMetadataKey(group=what), None)], NOW))
    return build([(NOW, *what, ())])


OneGroup = tuple[bool, int, frozenset[str]]  # is it a classic one; its generation or epoch; its members
Known = tuple[dict[str, dict[int, int]], dict[int, dict[tuple[str, int], int]], dict[str, OneGroup]]


def follow(groups: dict[str, OneGroup], key: Any, value: Any) -> None:
    """One record of a group. A group changes its protocol when it has no members."""
    is_classic, number, members = groups.get(key.group, (None, 0, frozenset()))
    is_free = not members
    match key, value:
        case GroupMetadataKey(), None if is_classic:
            del groups[key.group]
        case GroupMetadataKey(), GroupMetadataValue() if value.generation >= 0 and (is_classic or is_free):
            groups[key.group] = True, value.generation, frozenset(m.member_id for m in value.members)
        case ConsumerGroupMetadataKey(), None if is_classic is False:
            del groups[key.group]
        case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue() if is_classic is False or is_free:
            groups[key.group] = False, value.epoch, members
        case ConsumerGroupMemberMetadataKey(), None if is_classic is False:
            groups[key.group] = False, number, members - {key.member_id}
        case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue() if is_classic is False or is_free:
            groups[key.group] = False, 0 if is_classic else number, members | {key.member_id}


def naive(log: list[bytes], without: set[int]) -> Known:
    """Committed offsets, those that are pending, by producer, and groups."""
    offsets: dict[tuple[str, int], tuple[int, int]] = {}  # and where the record lies
    pending: dict[int, dict[tuple[str, int], tuple[int, int]]] = {}
    groups: dict[str, OneGroup] = {}
    for piece in log:
        header = read_header(piece)
        for record in records(header, piece):
            if header.is_control:
                marker = decode_control(record)
                if header.base_offset not in without and isinstance(marker, EndTxnMarker):
                    for at, found in pending.pop(header.producer_id, {}).items():
                        if marker.commits and offsets.get(at, (0, -1))[1] < found[1]:
                            offsets[at] = found
                continue
            try:
                key = decode_key(record.key)
                value = None if key is None else decode_value(key, record.value)
            except Corrupt:
                continue
            if isinstance(key, OffsetCommitKey):
                at = key.group, key.partition
                if isinstance(value, OffsetCommitValue):
                    into = pending.setdefault(header.producer_id, {}) if header.is_transactional else offsets
                    into[at] = value.offset, record.offset
                elif not header.is_transactional:
                    offsets.pop(at, None)
                    for open_ones in pending.values():
                        open_ones.pop(at, None)
            elif key is not None:
                follow(groups, key, value)
    by_group: dict[str, dict[int, int]] = {}
    for (group, partition), (offset, _) in offsets.items():
        by_group.setdefault(group, {})[partition] = offset
    return by_group, {p: {at: row[0] for at, row in rows.items()} for p, rows in pending.items() if rows}, groups


def known(shard: Shard) -> Known:
    return (
        {g: {p: row.offset for (_, p), row in rows.items()} for g, rows in shard.offsets.items()},
        {
            producer: {(g, p): row.offset for (g, _, p), row in rows.items()}
            for producer, rows in shard.pending.by_producer.items()
        },
        {
            name: (True, group.generation, frozenset(group.members))
            if isinstance(group, Group)
            else (False, group.epoch, frozenset(group.members))
            for name, group in shard.groups.items()
        },
    )


class Play:
    def __init__(self, log: list[tuple[str, Any, Any]], step_bytes: int) -> None:
        self.c = Coordination()
        self.c.log.epoch = None
        self.c.take(self.c.groups.follow_leadership(NOW))
        self.c.groups.shards.step_bytes = step_bytes
        for number, (kind, what, more) in enumerate(log):
            self.c.log.written(batch(kind, what, more, number))
        self.uncommitted: list[tuple[int, int, bool]] = []  # markers of this leadership: offset, producer, commits
        self.earlier: list[tuple[int, int, bool]] = []  # of earlier ones, which are committed late
        self.epoch = 0
        self.lead(True)

    def lead(self, leads: bool) -> None:
        self.epoch += 1
        self.c.log.epoch = LeaderEpoch(self.epoch) if leads else None
        self.earlier += self.uncommitted
        self.uncommitted = []
        self.c.take(self.c.groups.follow_leadership(Instant(self.c.now)))

    def play(self, kind: str, what: Any, more: Any) -> None:
        c = self.c
        if kind == "step":
            c.wait(1)
        elif kind == "lead":
            self.lead(what)
        elif kind == "damage":
            c.log.is_damaged = what
        elif kind == "marker" and c.log.epoch is not None:
            self.uncommitted.append((c.log.written(batch(kind, what, more, 0)), what, more))
        elif kind == "elsewhere" and c.log.epoch is None:
            c.log.written(batch(*what, c.log.end))
        elif kind == "committed" and (self.earlier or self.uncommitted):
            offset, producer, is_commit = (self.earlier or self.uncommitted).pop(0)
            c.marker_committed(offset, producer, commits=is_commit)
        self.check()

    def check(self) -> None:
        shards = self.c.groups.shards
        found = shards.of("g0")
        if self.c.log.epoch is None:
            assert found is ErrorCode.NOT_COORDINATOR
        elif shards.loading:
            assert found is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        else:
            assert isinstance(found, Shard)
            assert known(found) == naive(self.c.log.batches, {offset for offset, _, _ in self.uncommitted})


@settings(max_examples=300, deadline=None)
@given(st.lists(written, min_size=4, max_size=12), st.lists(events, min_size=4, max_size=20), st.integers(1, 300))
def test_a_load_in_steps_is_a_load(log: list[Any], then: list[Any], step_bytes: int) -> None:
    play = Play(log, step_bytes)
    play.check()
    for event in then:
        play.play(*event)
    play.play("damage", False, None)
    if play.c.log.epoch is None:
        play.lead(True)
    for _ in range(2_000):
        if not play.c.groups.shards.loading:
            break
        play.play("step", None, None)
    assert 0 in play.c.groups.shards.loaded, "a load ends"
    while play.earlier or play.uncommitted:
        play.play("committed", None, None)
