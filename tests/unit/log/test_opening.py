"""Which segments are believed when a log is opened after a crash."""

from tests.unit.log.logs import ROOT, append, open_log, produced, small

from strandline.sim.world.disk import SimDisk


def test_a_closed_segment_below_the_recovery_point_is_believed_only_if_it_goes_on_to_the_next() -> None:
    """A file that somebody truncated between two batches has indexes that fit it, and batches that are whole."""
    disk = SimDisk()
    log = open_log(disk, small())
    for _ in range(30):
        append(log, produced(1))
    end, bases = log.log_end_offset, list(log.bases)
    assert len(bases) > 3
    log.close()
    path = f"{ROOT}/{bases[1]:020d}.log"
    content = disk.read_file(path)
    assert content is not None
    batch = len(content) // (bases[2] - bases[1])
    disk.tamper(path, content[:-batch])
    again = open_log(disk, small(), clean=False, recovery_point=end)
    assert again.log_end_offset == bases[2] - 1
    assert again.bases == bases[:2]
