"""What is passed at first sight is what a look at each batch calls sound, whatever bit of a segment is another."""

from dataclasses import dataclass

import pytest
from tests.unit.log.logs import ROOT, append, open_log, produced

from strandline.log.evidence import soundness
from strandline.log.evidence.soundness import Checked, check
from strandline.log.log import Log
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import BatchHeader, batches

SEGMENT = f"{ROOT}/00000000000000000000.log"
LIMITS = (1, 200, 1 << 20)


@dataclass
class Written:
    """Five batches, of two records each, of epochs 0, 0, 1, 1, 2."""

    disk: SimDisk
    log: Log
    headers: list[BatchHeader]

    def found(self) -> list[Checked]:
        """By checks that begin at each batch, and end at each offset."""
        segment, end = self.log.active, self.log.log_end_offset
        return [
            check(self.log, segment, header.position, header.base_offset, upto, limit)
            for header in self.headers
            for upto in range(header.base_offset + 1, end + 1)
            for limit in LIMITS
        ]


@pytest.fixture
def written() -> Written:
    disk = SimDisk()
    log = open_log(disk)
    for number in range(5):
        append(log, produced(2), number // 2)
    log.tail.clear()
    return Written(disk, log, list(batches(disk.contents()[SEGMENT])))


def test_a_flipped_bit_is_found_as_by_a_look_at_each_batch(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = soundness.pass_sound
    found_some = 0
    for header in written.headers[1:4]:
        for byte in range(header.size):
            written.disk.flip(SEGMENT, header.position + byte, byte % 8)
            at_first_sight = written.found()
            monkeypatch.setattr(soundness, "pass_sound", lambda log, buffer, at, offset, bound: (at, offset))
            assert written.found() == at_first_sight, (header.base_offset, byte)
            monkeypatch.setattr(soundness, "pass_sound", quick)
            written.disk.flip(SEGMENT, header.position + byte, byte % 8)
            found_some += any(one.damage is not None for one in at_first_sight)
    assert found_some == sum(header.size for header in written.headers[1:4])


@pytest.mark.parametrize("start", range(11))
def test_deleted_records_are_judged_alike(written: Written, monkeypatch: pytest.MonkeyPatch, start: int) -> None:
    written.log.advance_log_start(start)
    at_first_sight = written.found()
    monkeypatch.setattr(soundness, "pass_sound", lambda log, buffer, at, offset, bound: (at, offset))
    assert written.found() == at_first_sight


def test_nothing_is_looked_at_twice_in_a_sound_log(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soundness, "is_sound", None)
    end = written.log.log_end_offset
    assert check(written.log, written.log.active, 0, 0, end, 1 << 20) == Checked(written.log.active.size, end)
