"""The metadata log on a real disk: what it keeps over restarts, snapshots, and downloads."""

from contextlib import nullcontext
from pathlib import Path
from struct import pack_into

import pytest
from msgspec.structs import replace

from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.quorum.elections.election_state import VOTES_LOST, ElectionState, encode_election
from strandline.quorum.ports import EpochEnd, SnapshotId
from strandline.quorum.storage.metadata_log import CONFIG, DIRECTORY, MetadataLog
from strandline.quorum.storage.snapshot_file import encode_snapshot, why_incomplete
from strandline.server.storage.disk import RealDisk
from strandline.wire.batch import ATTRIBUTES_AT, CRC_AT, build, crc_of, read_header
from strandline.wire.control import LeaderChangeMessage, build_control

NOW = Instant(1_000)


def opened(path: Path) -> MetadataLog:
    return MetadataLog.open(RealDisk(), str(path), NOW)


def batch(log: MetadataLog, epoch: int, *values: bytes) -> bytes:
    drafts = [(NOW, None, value, ()) for value in values]
    return build(drafts, base_offset=log.log_end_offset, leader_epoch=epoch)


def begin_epoch(log: MetadataLog, epoch: int) -> None:
    record = LeaderChangeMessage(leader_id=1)
    log.append_as_leader(build_control([record], timestamp=NOW, base_offset=log.log_end_offset, leader_epoch=epoch))


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    """Offsets 0-2 of epoch 1, 3-5 of epoch 3; the first of each is a control record."""
    log = opened(tmp_path)
    for epoch in (1, 3):
        begin_epoch(log, epoch)
        log.append_as_leader(batch(log, epoch, b"%d a" % epoch, b"%d b" % epoch))
    return log


def values(log: MetadataLog, start: int, end: int) -> list[bytes]:
    return [value for found in log.committed_batches(start, end) for value in found.records]


def test_new_log_is_empty(tmp_path: Path) -> None:
    log = opened(tmp_path)
    assert (log.log_start_offset, log.log_end_offset, log.last_epoch) == (0, 0, 0)
    assert log.latest_snapshot() is None
    assert log.end_of_epoch(0) == EpochEnd(0, 0)
    assert log.read_quorum_state() is None


def test_only_data_below_the_high_watermark_is_committed(log: MetadataLog) -> None:
    found = list(log.committed_batches(0, 4))
    assert [(b.base_offset, b.last_offset, b.epoch, b.append_time, b.records) for b in found] == [
        (1, 2, 1, NOW, [b"1 a", b"1 b"])
    ]
    assert values(log, 3, 6) == [b"3 a", b"3 b"]


def test_epoch_ends(log: MetadataLog) -> None:
    ends = [log.end_of_epoch(epoch) for epoch in range(5)]
    assert ends == [EpochEnd(0, 0), EpochEnd(1, 3), EpochEnd(1, 3), EpochEnd(3, 6), EpochEnd(3, 6)]


def test_restart_finds_everything(log: MetadataLog, tmp_path: Path) -> None:
    log.close()
    again = opened(tmp_path)
    assert (again.log_end_offset, again.last_epoch) == (6, 3)
    assert values(again, 0, 6) == [b"1 a", b"1 b", b"3 a", b"3 b"]


def test_follower_refuses_a_later_epoch_than_its_leaders(log: MetadataLog) -> None:
    why = log.append_as_follower(batch(log, 2147483647, b"x"), 4)
    assert why is not None and "2147483647" in why
    assert (log.log_end_offset, log.last_epoch) == (6, 3)


def test_follower_refuses_a_batch_that_moves_the_end_by_more_than_its_records(log: MetadataLog) -> None:
    hostile = bytearray(batch(log, 4, b"x"))
    pack_into(">i", hostile, ATTRIBUTES_AT + 2, 2147483647)
    header = read_header(hostile)
    pack_into(">I", hostile, CRC_AT, crc_of(header, hostile))
    assert log.append_as_follower(bytes(hostile), 4) is not None
    assert log.log_end_offset == 6


def test_unsynced_paths_are_named_once_per_write(log: MetadataLog) -> None:
    assert log.take_unsynced()
    assert log.take_unsynced() == ()
    log.append_as_leader(batch(log, 3, b"more"))
    log.mark_synced(6)
    assert log.take_unsynced()


def test_a_snapshot_that_is_written_while_the_log_is_synced_is_not_durable_with_it(log: MetadataLog) -> None:
    """The sync was asked for before the snapshot was there: what the snapshot makes superfluous must stay."""
    assert log.take_unsynced()
    log.write_snapshot(3, 1, [b"state"], NOW)
    log.mark_synced(6)
    path = log.snapshot_path(SnapshotId(3, 1))
    assert path in log.unsynced_snapshots
    log.write_snapshot(6, 3, [b"state"], NOW)
    assert log.log_start_offset == 0
    assert path in log.take_unsynced()


def test_follower_refuses_a_gap_an_older_epoch_and_damage(log: MetadataLog) -> None:
    gap = build([(NOW, None, b"x", ())], base_offset=9, leader_epoch=3)
    old = build([(NOW, None, b"x", ())], base_offset=6, leader_epoch=2)
    torn = bytearray(batch(log, 3, b"x"))
    torn[-1] ^= 1
    for bad in (gap, old, bytes(torn)):
        assert log.append_as_follower(bad, 4) is not None
    assert log.log_end_offset == 6
    assert log.append_as_follower(batch(log, 4, b"x"), 4) is None
    assert (log.log_end_offset, log.last_epoch) == (7, 4)


def test_truncation_forgets_later_epochs(log: MetadataLog) -> None:
    log.truncate_to(3)
    assert (log.log_end_offset, log.last_epoch) == (3, 1)
    assert log.end_of_epoch(3) == EpochEnd(1, 3)


def test_truncation_below_a_snapshot_forgets_it_and_its_epoch(log: MetadataLog, tmp_path: Path) -> None:
    """What a node could not apply is cut, and copied again from the leader: also records of an older epoch."""
    log.write_snapshot(6, 3, [b"state"], NOW)
    log.truncate_to(3)
    assert (log.log_end_offset, log.last_epoch, log.latest_snapshot()) == (3, 1, None)
    assert log.append_as_follower(batch(log, 2, b"x"), 4) is None
    log.check()
    log.close()
    assert opened(tmp_path).log_end_offset == 4


def sync(log: MetadataLog) -> None:
    end = log.log_end_offset
    assert log.take_unsynced()
    log.mark_synced(end)


def test_snapshot_is_read_back_and_outlives_a_restart(log: MetadataLog, tmp_path: Path) -> None:
    state = [b"s%d" % n for n in range(1000)]
    log.write_snapshot(6, 3, state, NOW)
    assert (tmp_path / "__cluster_metadata-0" / "00000000000000000006-0000000003.checkpoint").exists()
    log.close()
    again = opened(tmp_path)
    assert again.latest_snapshot() == SnapshotId(6, 3)
    assert list(again.read_snapshot(SnapshotId(6, 3))) == state


def test_log_starts_at_the_older_of_two_snapshots(log: MetadataLog, tmp_path: Path) -> None:
    log.write_snapshot(3, 1, [b"old"], NOW)
    assert log.log_start_offset == 0  # the only snapshot may not be durable yet
    sync(log)
    log.append_as_leader(batch(log, 3, b"3 c"))
    log.write_snapshot(7, 3, [b"new"], NOW)
    log.check()
    assert (log.log_start_offset, log.log_end_offset) == (3, 7)
    assert (log.earliest_snapshot(), log.latest_snapshot()) == (SnapshotId(3, 1), SnapshotId(7, 3))
    log.close()
    again = opened(tmp_path)
    again.check()
    assert (again.log_start_offset, again.log_end_offset) == (3, 7)
    assert values(again, 0, 7) == [b"3 a", b"3 b", b"3 c"]
    again.append_as_leader(batch(again, 3, b"3 d"))
    sync(again)
    again.write_snapshot(8, 3, [b"newest"], NOW)
    assert again.snapshot_size(SnapshotId(3, 1)) is None
    assert again.log_start_offset == 7


def test_unsynced_snapshot_deletes_nothing(log: MetadataLog) -> None:
    log.write_snapshot(3, 1, [b"old"], NOW)
    log.write_snapshot(6, 3, [b"new"], NOW)
    assert log.log_start_offset == 0


def download(log: MetadataLog, snapshot: SnapshotId, content: bytes) -> str | None:
    log.begin_part(snapshot)
    for position in range(0, len(content), 100):
        log.append_part(snapshot, content[position : position + 100])
    return log.name_part(snapshot)


def test_downloaded_snapshot_replaces_the_log(log: MetadataLog, tmp_path: Path) -> None:
    snapshot = SnapshotId(20, 5)
    assert download(log, snapshot, encode_snapshot([b"state"], 5, NOW)) is None
    log.install_snapshot(snapshot)
    log.check()
    assert (log.log_start_offset, log.log_end_offset, log.last_epoch) == (20, 20, 5)
    assert log.end_of_epoch(5) == EpochEnd(5, 20)
    log.append_as_leader(batch(log, 6, b"after"))
    log.close()
    again = opened(tmp_path)
    assert list(again.read_snapshot(snapshot)) == [b"state"]
    assert (again.log_start_offset, again.log_end_offset, again.last_epoch) == (20, 21, 6)


def test_crash_between_naming_and_installing_is_made_up_for(log: MetadataLog, tmp_path: Path) -> None:
    assert download(log, SnapshotId(20, 5), encode_snapshot([b"state"], 5, NOW)) is None
    log.close()
    again = opened(tmp_path)
    assert (again.log_start_offset, again.log_end_offset, again.last_epoch) == (20, 20, 5)


def test_snapshot_beside_the_logs_history_wins(log: MetadataLog, tmp_path: Path) -> None:
    assert download(log, SnapshotId(5, 2), encode_snapshot([b"state"], 2, NOW)) is None
    log.close()
    again = opened(tmp_path)
    assert (again.log_start_offset, again.log_end_offset, again.last_epoch) == (5, 5, 2)


def test_damaged_download_is_refused(log: MetadataLog) -> None:
    whole = encode_snapshot([b"state"], 5, NOW)
    damaged = bytearray(whole)
    damaged[-1] ^= 1
    headless = build([(NOW, None, b"x", ())], base_offset=0, leader_epoch=5)
    for content in (whole[:-1], whole[: len(whole) // 2], bytes(damaged), headless, b""):
        assert download(log, SnapshotId(20, 5), content) is not None
    assert log.log_end_offset == 6


def test_torn_snapshot_is_removed_at_start(log: MetadataLog, tmp_path: Path) -> None:
    log.write_snapshot(6, 3, [b"state"], NOW)
    log.close()
    path = tmp_path / "__cluster_metadata-0" / "00000000000000000006-0000000003.checkpoint"
    path.write_bytes(path.read_bytes()[:-3])
    again = opened(tmp_path)
    assert again.latest_snapshot() is None
    assert not path.exists()
    assert again.log_end_offset == 6


@pytest.mark.parametrize("named", [SnapshotId(5, 3), SnapshotId(6, 2)])
def test_a_snapshot_that_is_another_one_than_its_name_says_is_none(
    log: MetadataLog, tmp_path: Path, named: SnapshotId
) -> None:
    content = encode_snapshot([b"state"], 3, NOW, 6)
    assert why_incomplete(content, SnapshotId(6, 3)) is None
    assert why_incomplete(encode_snapshot([b"state"], 3, NOW), SnapshotId(6, 3)) is None, "Kafka's say no offset"
    assert why_incomplete(content, named) is not None
    assert download(log, named, content) is not None
    log.close()
    path = Path(log.snapshot_path(named))
    path.write_bytes(content)
    assert opened(tmp_path).latest_snapshot() is None
    assert not path.exists()


def test_large_snapshot_has_several_batches() -> None:
    content = encode_snapshot([b"x" * 600_000] * 5, 1, NOW)
    assert why_incomplete(content) is None


def test_lost_snapshot_below_the_log_is_no_silent_loss(log: MetadataLog, tmp_path: Path) -> None:
    snapshot = SnapshotId(20, 5)
    assert download(log, snapshot, encode_snapshot([b"state"], 5, NOW)) is None
    log.install_snapshot(snapshot)
    log.close()
    RealDisk().remove(log.snapshot_path(snapshot))
    with pytest.raises(DiskError, match="snapshot below it is gone"):
        opened(tmp_path)


PROOF, OLDER = ElectionState(5), ElectionState(4)


@pytest.mark.parametrize(
    ("state", "applied", "has_others", "begins_anew"),
    [
        (PROOF, 20, True, True),
        (PROOF, VOTES_LOST, True, True),
        (PROOF, 20, False, False),  # nobody has what this one would throw away
        (PROOF, 0, True, False),  # beside an empty log it would say nothing of a loss
        (OLDER, 20, True, False),  # beside an empty log nobody would see that it is older
        (None, 0, True, False),
    ],
)
def test_a_log_whose_snapshots_are_gone_begins_anew_if_the_loss_is_seen_and_others_have_it(
    log: MetadataLog, tmp_path: Path, state: ElectionState | None, applied: int, *, has_others: bool, begins_anew: bool
) -> None:
    snapshot = SnapshotId(20, 5)
    assert download(log, snapshot, encode_snapshot([b"state"], 5, NOW)) is None
    log.install_snapshot(snapshot)
    log.append_as_leader(batch(log, 5, b"after"))
    log.close()
    Path(log.snapshot_path(snapshot)).unlink()
    if state is not None:
        Path(log.quorum_state_path).write_bytes(encode_election(state, "c", [], applied))
    with nullcontext() if begins_anew else pytest.raises(DiskError, match="snapshot below it is gone"):
        again = MetadataLog.open(RealDisk(), str(tmp_path), NOW, has_others=has_others)
        assert (again.log_start_offset, again.log_end_offset) == (0, 0)


def segments(path: Path) -> list[str]:
    return sorted(file.name for file in (path / DIRECTORY).glob("*.log"))


@pytest.mark.parametrize(
    ("limit", "times", "counts"),
    [
        ({"segment_bytes": 400}, (0, 0, 0, 0, 0), [1, 1, 2, 2, 3]),
        ({"segment_ms": 10_000}, (0, 9_999, 10_000, 10_001, 20_000), [1, 1, 2, 2, 3]),
    ],
)
def test_the_log_rolls_by_size_and_by_age(
    limit: dict[str, int], times: tuple[int, ...], counts: list[int], tmp_path: Path
) -> None:
    log = MetadataLog.open(RealDisk(), str(tmp_path), NOW, replace(CONFIG, **limit))
    seen = []
    for at in times:
        drafts = [(NOW + at, None, b"v" * 100, ())]
        log.append_as_leader(build(drafts, base_offset=log.log_end_offset, leader_epoch=1))
        log.check()
        seen.append(len(segments(tmp_path)))
    assert seen == counts
    log.close()
    again = opened(tmp_path)
    assert again.log_end_offset == 5
    assert len(segments(tmp_path)) == 3


@pytest.mark.parametrize(
    "name", ["99999999999999999999-0000000003", "00000000000000000002-9999999999", "²" * 20 + "-" + "²" * 10]
)
def test_a_snapshot_of_an_offset_or_epoch_that_nobody_has_is_none(log: MetadataLog, tmp_path: Path, name: str) -> None:
    """It would be taken for the newest state, and the log would begin anew there."""
    log.close()
    (tmp_path / DIRECTORY / f"{name}.checkpoint").write_bytes(encode_snapshot([b"x"], 3, NOW))
    again = opened(tmp_path)
    assert (again.log_end_offset, again.latest_snapshot()) == (6, None)
