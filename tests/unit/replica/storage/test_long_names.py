"""Topics with the longest names that are legal, on a real file system, which takes names of 255 bytes at most."""

from pathlib import Path

import pytest
from tests.unit.replica.conftest import World, registration

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, TopicIdPartition, TopicPartition, Uuid
from strandline.metadata import records as r
from strandline.replica.config import LogDir
from strandline.replica.hosting.directories import Directories
from strandline.server.storage.disk import RealDisk

ME = NodeId(1)
ID = Uuid(b"a topic's own id")
IDS = tuple(Uuid(bytes([1, number] * 8)) for number in range(2))
TOO_LONG = ErrorCode.INVALID_TOPIC_EXCEPTION
LENGTHS = [200, 213, 214, 215, 249]


class Real(World):
    """One broker on real files."""

    def __init__(self, root: Path, directories: int) -> None:
        self.log_dirs = [LogDir(str(root / f"d{number}"), IDS[number]) for number in range(directories)]
        super().__init__(0)
        self.disks[ME] = RealDisk()  # type: ignore[assignment]
        self.start(ME)
        self.commit(registration(ME, log_dirs=IDS[:directories]))

    def directories(self, node: NodeId) -> Directories:
        return Directories(list(self.log_dirs))

    def create_named(self, name: str, partition: int = 0) -> None:
        self.commit(
            r.TopicRecord(name=name, topic_id=ID),
            r.PartitionRecord(
                partition_id=partition, topic_id=ID, replicas=(1,), isr=(1,), leader=1, leader_epoch=0,
                partition_epoch=0, directories=IDS[:1],
            ),
        )  # fmt: skip

    def entries(self) -> list[list[str]]:
        every = [self.disks[ME].list(log_dir.path) for log_dir in self.log_dirs]
        return [[name for name in names if "checkpoint" not in name] for names in every]

    def live(self) -> list[LogDir]:
        return self.nodes[ME].host.directories.live


@pytest.mark.parametrize("length", LENGTHS)
def test_a_topic_with_a_long_name_is_deleted(tmp_path: Path, length: int) -> None:
    real = Real(tmp_path, 1)
    real.create_named("n" * length, 99_999)
    real.commit(r.RemoveTopicRecord(topic_id=ID))
    assert real.entries() == [[]]
    assert real.live() == real.log_dirs


@pytest.mark.parametrize("length", LENGTHS)
def test_a_stray_log_with_a_long_name_is_deleted_after_a_restart(tmp_path: Path, length: int) -> None:
    real = Real(tmp_path, 1)
    real.create_named("n" * length)
    real.kill(ME)
    real.commit(r.RemoveTopicRecord(topic_id=ID))
    real.start(ME)
    assert real.entries() == [[f"{'n' * length}-0"]]
    real.perform(ME, real.nodes[ME].delete_strays(real.now))
    real.perform(ME, real.nodes[ME].flush(real.now))
    assert real.entries() == [[]]


@pytest.mark.parametrize("length", [214, 215, 249])
def test_a_replica_with_a_long_name_does_not_move_and_nothing_comes_of_it(tmp_path: Path, length: int) -> None:
    """As Kafka, whose future logs have whole names too."""
    real = Real(tmp_path, 2)
    real.create_named("n" * length)
    before = real.entries()
    futures = real.nodes[ME].futures
    assert futures.alter(TopicPartition("n" * length, 0), real.log_dirs[1].path, real.now) is TOO_LONG
    assert futures.moving == {}
    assert real.entries() == before
    assert real.live() == real.log_dirs


def test_a_replica_with_a_name_that_just_fits_moves(tmp_path: Path) -> None:
    real = Real(tmp_path, 2)
    real.create_named("n" * 213)
    futures = real.nodes[ME].futures
    assert futures.alter(TopicPartition("n" * 213, 0), real.log_dirs[1].path, real.now) is ErrorCode.NONE
    hosted = real.nodes[ME].host.partitions.find(TopicIdPartition(ID, 0))
    assert hosted is not None
    assert hosted.at in futures.moving


def test_a_name_too_long_is_not_kept_as_a_wish_for_later(tmp_path: Path) -> None:
    real = Real(tmp_path, 2)
    replicas = real.nodes[ME]
    assert replicas.futures.alter(TopicPartition("n" * 249, 0), real.log_dirs[1].path, real.now) is TOO_LONG
    assert replicas.storage.placement.preferred == {}
