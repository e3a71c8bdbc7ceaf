"""Small files of a log directory that are damaged when the broker starts: what stops for it, and what does not."""

import pytest
from tests.rows import each
from tests.unit.replica.conftest import AT, World
from tests.unit.replica.storage.test_directories import Jbod, directory

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, Uuid, uuid_text
from strandline.base.ports import DiskError
from strandline.metadata import records as r
from strandline.sim.world.disk import SimDisk

ME = NodeId(1)
HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
TOPIC_IDS = "topic-id-checkpoint"
NONSENSE = [b"", b"\0" * 100, b"0\n5\nt 0 3\n", b"garbage", b"0\n1\nt 0 -3\n", b"0\n1\nt 0 three\n", b"\xff\xfe\n"]


def stopped() -> Jbod:
    """One broker that stopped cleanly, with nine records in /d1, the first two of them deleted."""
    made = Jbod(1)
    made.create_in(directory(1, 1))
    for _ in range(3):
        made.produce(1, 3)
    made.run(70_000)
    hosted = made.nodes[ME].host.partitions.find(AT)
    assert hosted is not None
    hosted.log.advance_log_start(2)
    made.nodes[ME].shutdown(made.now)
    made.nodes[ME].close()
    made.kill(ME)
    made.reports.clear()
    return made


@pytest.fixture
def jbod() -> Jbod:
    return stopped()


def disk(jbod: Jbod) -> SimDisk:
    found = jbod.disks[ME]
    assert isinstance(found, SimDisk)
    return found


def live(jbod: Jbod) -> list[str]:
    return [log_dir.path for log_dir in jbod.nodes[ME].host.directories.live]


# --- checkpoints


@each("clean", [True, False])
@each("content", NONSENSE)
@each("file", [HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS, TOPIC_IDS], jbod=stopped)
def test_a_damaged_checkpoint_is_done_without(jbod: Jbod, file: str, content: bytes, clean: bool) -> None:
    """And nothing else of this directory or of another is lost for it."""
    disk(jbod).write_file(f"/d1/{file}", content)
    jbod.start(ME, clean=clean)
    assert live(jbod) == ["/d0", "/d1"]
    assert jbod.row(1)[:4] == ("leader", 0, 9, 9)
    hosted = jbod.nodes[ME].host.partitions.find(AT)
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


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", NONSENSE)
def test_a_damaged_checkpoint_of_the_cleaner_takes_its_directory_offline(
    jbod: Jbod, content: bytes, clean: bool
) -> None:
    """It says which logs have gaps; the others are cut where one is found."""
    disk(jbod).write_file("/d1/cleaner-offset-checkpoint", content)
    before = below(jbod, "/d1/t-0")
    jbod.start(ME, clean=clean)
    assert live(jbod) == ["/d0"]
    assert any("/d1/cleaner-offset-checkpoint" in report for report in jbod.reports)
    assert below(jbod, "/d1/t-0") == before
    assert disk(jbod).read_file("/d1/cleaner-offset-checkpoint") == content


def test_an_empty_checkpoint_of_the_cleaner_that_kafka_left_is_none(jbod: Jbod) -> None:
    disk(jbod).write_file("/d1/cleaner-offset-checkpoint", b"")
    disk(jbod).remove(f"/d1/{TOPIC_IDS}")
    jbod.start(ME, clean=False)
    assert live(jbod) == ["/d0", "/d1"]


@pytest.mark.parametrize("file", [HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS, TOPIC_IDS])
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


# --- whose log it is

ID_FILE = "/d1/t-0/partition.metadata"
SEGMENT = "00000000000000000000.log"
DAMAGED = [
    None,
    b"",
    b"\0" * 50,
    b"version: 0",
    b"version: 0\ntopic_id: ?",
    b"version: 1\ntopic_id: aaaaaaaaaaaaaaaaaaaaaa",
]


def spoil(jbod: Jbod, content: bytes | None, *, is_noted: bool = False) -> dict[str, bytes]:
    """Returns what is in the log's directory then. `is_noted`: its checkpoint says whose it is."""
    if not is_noted:
        disk(jbod).remove(f"/d1/{TOPIC_IDS}")
    if content is None:
        disk(jbod).remove(ID_FILE)
    else:
        disk(jbod).write_file(ID_FILE, content)
    return below(jbod, "/d1/t-0")


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", DAMAGED)
def test_a_log_that_lost_its_topic_id_has_it_again_by_the_checkpoint(
    jbod: Jbod, content: bytes | None, clean: bool
) -> None:
    """One file costs nothing: neither its own log, nor the others of the directory."""
    whole = disk(jbod).read_file(ID_FILE)
    spoil(jbod, content, is_noted=True)
    jbod.start(ME, clean=clean)
    assert live(jbod) == ["/d0", "/d1"]
    assert jbod.row(1)[:4] == ("leader", 0, 9, 9)
    assert disk(jbod).read_file(ID_FILE) == whole
    (report,) = jbod.reports
    assert "/d1/t-0 had lost its topic id" in report


def test_an_id_that_is_a_character_beside_that_of_the_checkpoint_is_damaged(jbod: Jbod) -> None:
    whole = disk(jbod).read_file(ID_FILE)
    assert whole is not None
    text = bytearray(whole)
    text[-5] ^= 1
    spoil(jbod, bytes(text), is_noted=True)
    jbod.start(ME, clean=False)
    assert jbod.row(1)[:4] == ("leader", 0, 9, 9)
    assert disk(jbod).read_file(ID_FILE) == whole


def test_before_a_name_is_used_again_no_checkpoint_says_whose_it_was(jbod: Jbod) -> None:
    """Or a crash soon after would give the new topic's records to the old one."""
    jbod.start(ME)
    jbod.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    assert b"t 0" in (disk(jbod).read_file(f"/d1/{TOPIC_IDS}") or b"")
    another = Uuid(b"another topic id")
    jbod.commit(
        r.TopicRecord(name="t", topic_id=another),
        r.PartitionRecord(
            topic_id=another, partition_id=0, replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0
        ),
    )
    assert uuid_text(AT.topic_id).encode() not in (disk(jbod).read_file(f"/d1/{TOPIC_IDS}") or b"")


def below(jbod: Jbod, path: str) -> dict[str, bytes]:
    found = disk(jbod).contents()
    return {name.removeprefix(path): found[name] for name in found if name.startswith(f"{path}/")}


def never_synced() -> Jbod:
    """One broker that was killed before it had flushed anything."""
    made = Jbod(1)
    made.create_in(directory(1, 1))
    made.produce(1, 3)
    made.kill(ME)
    made.reports.clear()
    return made


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", DAMAGED)
def test_a_log_without_any_topic_id_takes_its_directory_offline(jbod: Jbod, content: bytes | None, clean: bool) -> None:
    """An empty log in its place would lead, and the records would be gone."""
    before = spoil(jbod, content)
    jbod.start(ME, clean=clean)
    assert live(jbod) == ["/d0"]
    assert jbod.nodes[ME].host.partitions.find(AT) is None
    assert jbod.produce(1, 1)().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert any("/d1 is offline" in text and ID_FILE in text for text in jbod.reports)
    jbod.run(70_000)
    assert below(jbod, "/d1/t-0") == before


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("place", [0, 10, 20])
def test_an_id_that_is_a_character_beside_the_topics_is_damaged_and_no_other_topics(
    jbod: Jbod, place: int, clean: bool
) -> None:
    """Most wrong bits give an id that could be one. The records would go as those of a topic that was deleted (T39)."""
    whole = disk(jbod).read_file(ID_FILE)
    assert whole is not None
    text = bytearray(whole)
    text[-22 + place] ^= 1
    before = spoil(jbod, bytes(text))
    jbod.start(ME, clean=clean)
    jbod.perform(ME, jbod.nodes[ME].delete_strays(jbod.now))
    assert live(jbod) == ["/d0"]
    assert jbod.produce(1, 1)().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert any("/d1 is offline" in text and ID_FILE in text for text in jbod.reports)
    jbod.run(70_000)
    after = below(jbod, "/d1/t-0")
    for name in (f"/{SEGMENT}", "/partition.metadata"):
        assert after[name] == before[name]


def test_another_topics_log_under_the_same_name_is_deleted_as_ever(jbod: Jbod) -> None:
    """T39."""
    spoil(jbod, f"version: 0\ntopic_id: {uuid_text(Uuid(b'an older topic t'))}".encode(), is_noted=True)
    jbod.start(ME)
    assert live(jbod) == ["/d0", "/d1"]
    assert jbod.row(1)[:4] == ("leader", 0, 0, 0)


def test_where_the_recovery_points_are_damaged_too_the_records_may_have_been_synced(jbod: Jbod) -> None:
    before = spoil(jbod, None)
    disk(jbod).write_file(f"/d1/{RECOVERY_POINTS}", b"garbage")
    jbod.start(ME, clean=False)
    assert live(jbod) == ["/d0"]
    assert below(jbod, "/d1/t-0") == before


def test_a_log_whose_records_were_all_deleted_is_no_empty_one(jbod: Jbod) -> None:
    """A new log in its place would give offsets a second time."""
    disk(jbod).remove(f"/d1/t-0/{SEGMENT}")
    disk(jbod).write_file("/d1/t-0/00000000000000000009.log", b"")
    before = spoil(jbod, None)
    jbod.start(ME)
    assert live(jbod) == ["/d0"]
    assert below(jbod, "/d1/t-0") == before


def test_the_only_directory_ends_the_process() -> None:
    world = World(1)
    world.create(replicas=(1,))
    world.produce(1, 3)
    world.run(70_000)
    world.kill(ME)
    world.disks[ME].write_file("/data1/t-0/partition.metadata", b"version: 0")
    world.disks[ME].remove(f"/data1/{TOPIC_IDS}")
    with pytest.raises(DiskError, match=r"/data1/t-0/partition\.metadata"):
        world.start(ME, clean=False)


@pytest.mark.parametrize("content", DAMAGED)
def test_after_an_unclean_stop_records_that_were_never_synced_are_set_aside(content: bytes | None) -> None:
    """A loss of power takes the topic's id, which is synced with the first records, and leaves some of these. No flush
    has vouched for them: the log begins anew, as if the power had taken all of it."""
    jbod = never_synced()
    before = spoil(jbod, content)
    jbod.start(ME, clean=False)
    assert live(jbod) == ["/d0", "/d1"]
    assert jbod.row(1)[:4] == ("leader", 0, 0, 0)
    assert jbod.path(1) == "/d1"
    assert below(jbod, "/d1/t-0.1-stray") == before
    assert any("/d1/t-0.1-stray" in text and ID_FILE in text for text in jbod.reports)
    jbod.produce(1, 3)
    jbod.kill(ME)
    again = spoil(jbod, content)
    jbod.start(ME, clean=False)
    assert below(jbod, "/d1/t-0.1-stray") == before
    assert below(jbod, "/d1/t-0.2-stray") == again


def test_a_recovery_point_at_the_logs_beginning_vouches_for_nothing() -> None:
    """A follower that begins where its leader's log does, far behind 0, has synced nothing yet."""
    jbod = never_synced()
    segment = disk(jbod).contents()[f"/d1/t-0/{SEGMENT}"]
    disk(jbod).remove(f"/d1/t-0/{SEGMENT}")
    disk(jbod).write_file("/d1/t-0/00000000000000005000.log", segment)
    disk(jbod).write_file(f"/d1/{RECOVERY_POINTS}", b"0\n1\nt 0 5000\n")
    before = spoil(jbod, None)
    jbod.start(ME, clean=False)
    assert live(jbod) == ["/d0", "/d1"]
    assert below(jbod, "/d1/t-0.1-stray") == before


@each("clean", [True, False])
@each("content", DAMAGED)
def test_a_log_without_records_is_begun_anew(content: bytes | None, clean: bool) -> None:
    jbod = Jbod(1)
    jbod.create_in(directory(1, 1))
    jbod.kill(ME)
    spoil(jbod, content)
    jbod.start(ME, clean=clean)
    assert jbod.row(1)[:4] == ("leader", 0, 0, 0)
    assert jbod.path(1) == "/d1"
    assert [name for name in disk(jbod).list("/d1") if name.startswith("t-0")] == ["t-0"]


def test_a_new_log_takes_no_place_of_records_that_came_while_the_broker_ran(jbod: Jbod) -> None:
    """Whoever put them there."""
    kept = below(jbod, "/d1/t-0")
    for name in ("/d1/t-0", "/d0/t-0"):
        disk(jbod).remove_tree(name)
    jbod.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    jbod.start(ME)
    disk(jbod).make_directory("/d1/t-0")
    for name, content in kept.items():
        if not name.endswith(".metadata"):
            disk(jbod).write_file(f"/d1/t-0{name}", content)
    jbod.create_in(directory(1, 1))
    assert live(jbod) == ["/d0"]
    assert below(jbod, "/d1/t-0") == {name: kept[name] for name in kept if not name.endswith(".metadata")}


def test_the_metadata_logs_own_directory_is_not_looked_at(jbod: Jbod) -> None:
    disk(jbod).make_directory("/d1/__cluster_metadata-0")
    disk(jbod).write_file(f"/d1/__cluster_metadata-0/{SEGMENT}", b"records")
    jbod.start(ME)
    assert live(jbod) == ["/d0", "/d1"]
