"""Future logs that a start finds: a move goes on if it was asked for last and not taken back, and no other does."""

import pytest
from tests.unit.replica.conftest import AT, World, a_batch, registration

from strandline.base.ids import ZERO_UUID, NodeId, TopicPartition, Uuid
from strandline.log.directory import future_name, write_partition_metadata
from strandline.metadata import records as r
from strandline.metadata.image import LOST_DIRECTORY, TOPIC_RESOURCE
from strandline.replica.config import LogDir
from strandline.replica.hosting.directories import Directories
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import patch, read_header

ME = NodeId(1)
T0 = TopicPartition("t", 0)
ROOTS = ("/d0", "/d1", "/d2")
FUTURE = f"t-0.{AT.topic_id.hex()}-future"


def directory(number: int) -> Uuid:
    return Uuid(bytes([1, number] * 8))


class Three(World):
    """One broker with three log directories and a partition in the first of them. `dead`: unreadable at a start."""

    dead: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__(0)
        self.disks[ME] = SimDisk(ROOTS)  # type: ignore[assignment]
        self.start(ME)
        self.commit(registration(ME, log_dirs=tuple(map(directory, range(3)))))
        self.commit(
            r.TopicRecord(name="t", topic_id=AT.topic_id),
            r.PartitionRecord(
                partition_id=0, topic_id=AT.topic_id, replicas=(1,), isr=(1,), leader=1, leader_epoch=0,
                partition_epoch=0, directories=(directory(0),),
            ),
        )  # fmt: skip
        self.produce(1, 5)
        self.run(70_000)

    def directories(self, node: NodeId) -> Directories:
        every = [LogDir(root, directory(number)) for number, root in enumerate(ROOTS)]
        dead = [LogDir(log_dir.path, ZERO_UUID) for log_dir in every if log_dir.path in self.dead]
        return Directories([log_dir for log_dir in every if log_dir.path not in self.dead], dead)

    def restart(self, *dead: str) -> None:
        if ME in self.nodes:
            self.stop()
        self.dead = dead
        self.reports.clear()
        self.start(ME)
        self.run(2_000)
        self.perform(ME, self.nodes[ME].delete_strays(self.now))
        self.perform(ME, self.nodes[ME].flush(self.now))

    def stop(self) -> None:
        self.nodes[ME].shutdown(self.now)
        self.nodes[ME].close()
        self.kill(ME)

    def begin(self, root: str) -> None:
        """A move that does not end, since the controller is not heard."""
        self.controller_answers = False
        assert self.nodes[ME].futures.alter(T0, root, self.now) == 0
        self.run(100)

    def heard(self) -> None:
        self.held.clear()
        self.controller_answers = True

    def found(self) -> list[list[str]]:
        return [[name for name in self.disks[ME].list(root) if name.startswith("t-0")] for root in ROOTS]

    def place(self) -> str | None:
        hosted = self.nodes[ME].host.partitions.find(AT)
        return None if hosted is None else hosted.directory.path

    def named(self) -> Uuid:
        partition = self.image.partition(AT)
        assert partition is not None
        return partition.directories[0]


@pytest.fixture
def three() -> Three:
    return Three()


def test_futures_that_nobody_asked_for_are_buried_and_nothing_moves(three: Three) -> None:
    three.stop()
    for root in ("/d1", "/d2"):
        path = f"{root}/{future_name(T0, AT.topic_id)}"
        three.disks[ME].make_directory(path)
        write_partition_metadata(three.disks[ME], path, AT.topic_id)
    three.restart()
    assert three.place() == "/d0"
    assert three.found() == [["t-0"], [], []]
    assert len([text for text in three.reports if "-future" in text]) == 2, "not silently"


def test_of_several_the_one_goes_on_that_was_asked_for_last(three: Three) -> None:
    three.begin("/d1")
    three.disks[ME].fail("/d1")  # type: ignore[attr-defined]
    three.produce(1, 1)
    three.run(1_000)
    three.begin("/d2")
    three.disks[ME].mend("/d1")  # type: ignore[attr-defined]
    assert three.found() == [["t-0"], [FUTURE], [FUTURE]]
    three.stop()
    three.heard()
    three.restart()
    assert three.place() == "/d2"
    assert three.found() == [[], [], ["t-0"]]
    three.restart()
    assert three.place() == "/d2"
    assert three.row(1)[3] == 6


def test_a_move_that_was_taken_back_while_its_directory_was_offline_stays_taken_back(three: Three) -> None:
    three.begin("/d1")
    three.stop()
    three.restart("/d1")
    assert three.place() == "/d0"
    assert three.nodes[ME].futures.alter(T0, "/d0", three.now) == 0
    three.heard()
    three.restart()
    assert three.place() == "/d0"
    assert three.found() == [["t-0"], [], []]


def test_a_move_whose_directory_is_back_goes_on(three: Three) -> None:
    three.begin("/d1")
    three.stop()
    three.heard()
    three.restart("/d1")
    assert three.place() == "/d0"
    three.restart()
    assert three.place() == "/d1"
    assert three.found() == [[], ["t-0"], []]
    assert three.row(1)[3] == 5


def test_a_move_that_ended_with_its_directory_does_not_come_back(three: Three) -> None:
    three.begin("/d1")
    three.disks[ME].fail("/d1")  # type: ignore[attr-defined]
    three.produce(1, 1)
    three.run(1_000)
    assert three.nodes[ME].futures.moving == {}
    three.disks[ME].mend("/d1")  # type: ignore[attr-defined]
    three.heard()
    three.restart()
    assert three.place() == "/d0"
    assert three.found() == [["t-0"], [], []]


def test_the_wish_is_durable_with_the_next_flush(three: Three) -> None:
    three.begin("/d1")
    assert three.disks[ME].lossy("/d0/t-0/future-directory")  # type: ignore[attr-defined]
    three.run(70_000)
    assert not three.disks[ME].lossy("/d0/t-0/future-directory")  # type: ignore[attr-defined]


# --- the current log is not found


def report_move(three: Three) -> None:
    """The controller knows of a move, and the log has not yet taken over."""
    three.begin("/d1")
    three.held.clear()
    three.commit(r.PartitionChangeRecord(partition_id=0, topic_id=AT.topic_id, directories=(directory(1),)), skip=(1,))
    three.stop()
    three.heard()


def test_where_the_current_log_may_lie_offline_the_replica_is_offline(three: Three) -> None:
    """The future log may lack what came last, and an empty one all: either could lead."""
    report_move(three)
    three.restart("/d0")
    assert three.place() is None
    assert three.named() == LOST_DIRECTORY
    assert three.found()[1] == [FUTURE]
    three.restart()
    assert three.place() == "/d1"
    assert three.found() == [[], ["t-0"], []]
    assert three.row(1)[:4] == ("leader", 0, 5, 5)


def test_where_the_current_log_is_gone_for_good_the_future_log_takes_its_place(three: Three) -> None:
    """Its disk was replaced by an empty one: the metadata's directory has the only copy that there is (KIP-858)."""
    report_move(three)
    three.disks[ME].wipe("/d0")  # type: ignore[attr-defined]
    three.restart()
    assert three.place() == "/d1"
    assert three.found() == [[], ["t-0"], []]
    assert three.row(1)[:4] == ("leader", 0, 5, 5)
    assert any(FUTURE in text for text in three.reports)
    three.restart()
    assert three.row(1)[:4] == ("leader", 0, 5, 5)


def test_a_compacted_future_log_that_takes_the_place_keeps_what_is_behind_its_gaps(three: Three) -> None:
    three.commit(
        r.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="cleanup.policy", value="compact")
    )
    three.begin("/d1")
    copy = three.nodes[ME].futures.moving[AT].log
    batch = bytearray(a_batch(2))
    patch(memoryview(batch), read_header(memoryview(batch)), 8, 0)
    copy.append_as_follower(bytes(batch), 0, three.now)
    assert copy.log_end_offset == 10
    three.held.clear()
    three.commit(r.PartitionChangeRecord(partition_id=0, topic_id=AT.topic_id, directories=(directory(1),)), skip=(1,))
    three.stop()
    three.heard()
    three.disks[ME].wipe("/d0")  # type: ignore[attr-defined]
    three.restart()
    assert three.place() == "/d1"
    assert three.row(1)[3] == 10


def test_a_future_log_that_metadata_does_not_name_is_not_taken_for_a_replica(three: Three) -> None:
    three.begin("/d1")
    three.stop()
    three.heard()
    three.disks[ME].wipe("/d0")  # type: ignore[attr-defined]
    three.restart()
    assert three.place() == "/d0"
    assert three.found() == [["t-0"], [], []]


def test_a_future_log_of_a_topic_that_was_deleted_meanwhile_is_buried(three: Three) -> None:
    three.begin("/d1")
    three.stop()
    three.heard()
    three.disks[ME].wipe("/d0")  # type: ignore[attr-defined]
    three.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    three.restart()
    assert three.found() == [[], [], []]
