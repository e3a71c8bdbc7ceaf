"""Small files of a log directory that are damaged when the broker starts: what stops for it, and what does not."""

import pytest
from tests.unit.replica.conftest import AT
from tests.unit.replica.test_directories import Jbod, directory

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.sim.disk import SimDisk

ME = NodeId(1)
HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
NONSENSE = [b"", b"\0" * 100, b"0\n5\nt 0 3\n", b"garbage", b"0\n1\nt 0 -3\n", b"0\n1\nt 0 three\n", b"\xff\xfe\n"]


@pytest.fixture
def jbod() -> Jbod:
    """One broker that stopped cleanly, with nine records in /d1, the first two of them deleted."""
    made = Jbod(1)
    made.create_in(directory(1, 1))
    for _ in range(3):
        made.produce(1, 3)
    made.run(70_000)
    hosted = made.nodes[ME].host.find(AT)
    assert hosted is not None
    hosted.log.advance_log_start(2)
    made.nodes[ME].shutdown(made.now)
    made.nodes[ME].close()
    made.kill(ME)
    made.reports.clear()
    return made


def disk(jbod: Jbod) -> SimDisk:
    found = jbod.disks[ME]
    assert isinstance(found, SimDisk)
    return found


def live(jbod: Jbod) -> list[str]:
    return [log_dir.path for log_dir in jbod.nodes[ME].host.directories.live]


# --- checkpoints


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", NONSENSE)
@pytest.mark.parametrize("file", [HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS])
def test_a_damaged_checkpoint_is_done_without(jbod: Jbod, file: str, content: bytes, clean: bool) -> None:
    """And nothing else of this directory or of another is lost for it."""
    disk(jbod).write_file(f"/d1/{file}", content)
    jbod.start(ME, clean=clean)
    assert live(jbod) == ["/d0", "/d1"]
    assert jbod.row(1)[:4] == ("leader", 0, 9, 9)
    hosted = jbod.nodes[ME].host.find(AT)
    assert hosted is not None
    assert hosted.log.log_start_offset == (0 if file == LOG_STARTS else 2)
    (report,) = jbod.reports
    assert f"/d1/{file}" in report
    assert jbod.produce(1, 1)().error_code == ErrorCode.NONE


def test_after_an_unclean_stop_a_damaged_recovery_point_has_every_batch_checked(jbod: Jbod) -> None:
    segment = "/d1/t-0/00000000000000000000.log"
    disk(jbod).flip(segment, len(disk(jbod).contents()[segment]) - 1, 0)
    disk(jbod).write_file(f"/d1/{RECOVERY_POINTS}", b"garbage")
    jbod.start(ME, clean=False)
    assert jbod.row(1)[3] == 6


@pytest.mark.parametrize("file", [HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS])
def test_a_damaged_checkpoint_is_whole_again_after_the_next_save(jbod: Jbod, file: str) -> None:
    whole = disk(jbod).read_file(f"/d1/{file}")
    disk(jbod).write_file(f"/d1/{file}", b"garbage")
    jbod.start(ME, clean=True)
    jbod.run(70_000)
    jbod.nodes[ME].shutdown(jbod.now)
    assert disk(jbod).read_file(f"/d1/{file}") == (b"0\n0\n" if file == LOG_STARTS else whole)
    jbod.kill(ME)
    jbod.reports.clear()
    jbod.start(ME, clean=True)
    assert jbod.reports == []
