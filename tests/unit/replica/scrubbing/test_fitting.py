"""Which bytes of another replica may take the place of damaged ones: a row for each thing that must fit."""

import pytest
from tests.unit.log.compaction.compacting import compacted, keyed
from tests.unit.log.logs import ROOT, append, open_log, produced

from strandline.log.evidence.soundness import Damage, check
from strandline.log.log import Log
from strandline.replica.scrubbing.fitting import fitting
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import CRC_AT, PREFIX, BatchHeader, batches, build

SEGMENT = f"{ROOT}/00000000000000000000.log"


class Rotten:
    """A log of six batches, of two records each, of epochs 0, 0, 1, 1, 2, 2; the one at offset 4 is damaged."""

    def __init__(self, *, is_compacted: bool = False, byte: int = 64) -> None:
        self.disk = SimDisk()
        self.log: Log = open_log(self.disk, compacted(segment_bytes=1 << 20) if is_compacted else None)
        for number in range(6):
            batch = keyed((f"k{number}", "1"), ("k", "2")) if is_compacted else produced(2)
            append(self.log, batch, number // 2)
        self.log.tail.clear()
        self.whole = self.disk.contents()[SEGMENT]
        self.headers: list[BatchHeader] = list(batches(self.whole))
        self.damage = self.flip(2, byte)

    def flip(self, number: int, byte: int) -> Damage:
        self.disk.flip(SEGMENT, self.headers[number].position + byte, 0)
        found = check(self.log, self.log.active, 0, 0, self.log.log_end_offset, 1 << 20).damage
        assert found is not None
        return found

    def piece(self, first: int, count: int = 1) -> bytearray:
        return bytearray(self.whole[self.headers[first].position : self.headers[first + count - 1].end])

    def fits(self, fetched: bytes, upto: int = 12) -> tuple[bytes, int] | None:
        found = fitting(self.log, self.log.active, self.damage, memoryview(fetched), upto)
        return None if found is None else (bytes(found[0]), found[1])


@pytest.fixture
def rotten() -> Rotten:
    return Rotten()


def test_the_batch_that_was_there_fits(rotten: Rotten) -> None:
    assert rotten.fits(rotten.piece(2)) == (bytes(rotten.piece(2)), 6)


def test_what_follows_in_the_answer_is_left_out(rotten: Rotten) -> None:
    assert rotten.fits(rotten.piece(2, 3)) == (bytes(rotten.piece(2)), 6)


def test_batches_that_are_damaged_in_a_row_are_taken_together(rotten: Rotten) -> None:
    rotten.damage = rotten.flip(3, 64)
    assert rotten.fits(rotten.piece(2, 4)) == (bytes(rotten.piece(2, 2)), 8)


def test_what_rotted_since_the_damage_was_found_does_not_keep_it_from_being_repaired(rotten: Rotten) -> None:
    rotten.flip(3, 64)
    assert rotten.fits(rotten.piece(2, 4)) == (bytes(rotten.piece(2)), 6)


def test_an_empty_answer_does_not_fit(rotten: Rotten) -> None:
    assert rotten.fits(b"") is None


def test_a_batch_that_is_damaged_itself_does_not_fit(rotten: Rotten) -> None:
    piece = rotten.piece(2)
    piece[70] ^= 1
    assert rotten.fits(piece) is None


@pytest.mark.parametrize("epoch", [0, 2, -1])
def test_a_batch_of_another_epoch_does_not_fit(rotten: Rotten, epoch: int) -> None:
    piece = rotten.piece(2)
    base, length, _ = PREFIX.unpack_from(piece)
    PREFIX.pack_into(piece, 0, base, length, epoch)
    assert rotten.fits(piece) is None


@pytest.mark.parametrize("base", [3, 5, 0, 1000])
def test_a_batch_at_another_offset_does_not_fit(rotten: Rotten, base: int) -> None:
    piece = rotten.piece(2)
    _, length, epoch = PREFIX.unpack_from(piece)
    PREFIX.pack_into(piece, 0, base, length, epoch)
    assert rotten.fits(piece) is None


@pytest.mark.parametrize(("upto", "fits"), [(6, True), (5, False), (4, False)])
def test_what_is_not_committed_does_not_fit(rotten: Rotten, upto: int, fits: bool) -> None:
    assert (rotten.fits(rotten.piece(2), upto) is not None) == fits


@pytest.mark.parametrize("size", [9, 11, 200])
def test_a_batch_of_another_size_does_not_fit(rotten: Rotten, size: int) -> None:
    """What lies behind it would be overwritten, or bytes of the damage would be left."""
    records = [(1_000_000, None, b"v" * 10, ()), (1_000_001, None, b"v" * size, ())]
    other = build(records, base_offset=4, leader_epoch=1)
    assert len(other) != len(rotten.piece(2))
    assert rotten.fits(other) is None


def of_size(size: int, count: int, base: int) -> bytes:
    """A batch of epoch 1 with so many records, and exactly so many bytes."""
    for last in range(size):
        values = [b"", *([b""] * (count - 2)), b"v" * last] if count > 1 else [b"v" * last]
        batch = build([(1_000_000, None, value, ()) for value in values], base_offset=base, leader_epoch=1)
        if len(batch) == size:
            return batch
    raise AssertionError(size)


@pytest.mark.parametrize(("base", "count"), [(4, 1), (4, 3), (3, 3), (5, 1), (3, 2)])
def test_a_batch_of_the_same_size_with_other_offsets_does_not_fit(rotten: Rotten, base: int, count: int) -> None:
    assert rotten.fits(of_size(len(rotten.piece(2)), 2, 4)) is not None
    assert rotten.fits(of_size(len(rotten.piece(2)), count, base)) is None


def test_nothing_sound_is_overwritten(rotten: Rotten) -> None:
    assert rotten.fits(of_size(len(rotten.piece(2, 2)), 4, 4)) is None


def test_the_last_batch_of_a_segment_must_end_with_it() -> None:
    rotten = Rotten()
    rotten.disk.flip(SEGMENT, rotten.headers[2].position + 64, 0)
    rotten.damage = rotten.flip(5, 64)
    assert rotten.damage.start == 10
    one_record = build([(1_000_000, None, b"v" * 26, ())], base_offset=10, leader_epoch=2)
    assert rotten.fits(rotten.piece(5)) == (bytes(rotten.piece(5)), 12)
    assert rotten.fits(one_record) is None


def test_a_part_of_more_than_is_asked_for_at_once_fits(rotten: Rotten, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (3, 4, 5):
        rotten.damage = rotten.flip(number, 64)
    assert rotten.fits(rotten.piece(2, 2)) is None
    monkeypatch.setattr("strandline.replica.scrubbing.fitting.FETCH_BYTES_MAX", 300)
    assert rotten.fits(rotten.piece(2, 2)) == (bytes(rotten.piece(2, 2)), 8)


# --- where cleaners are


@pytest.mark.parametrize("byte", [64, CRC_AT, 8, 22])
def test_in_a_compacted_log_the_batch_that_was_there_fits(byte: int) -> None:
    rotten = Rotten(is_compacted=True, byte=byte)
    assert rotten.fits(rotten.piece(2, 2)) == (bytes(rotten.piece(2)), 6)


def test_in_a_compacted_log_another_batch_of_the_same_size_does_not_fit() -> None:
    """Another replica's cleaner has left other records there, and some that are deleted here."""
    rotten = Rotten(is_compacted=True)
    records = [(1_000_000, b"k2", b"1", (("h", b"x"),)), (1_000_000, b"j", b"2", (("h", b"x"),))]
    other = build(records, base_offset=4, leader_epoch=1)
    assert len(other) == len(rotten.piece(2))
    assert rotten.fits(other) is None
