"""A replica moves to another log directory of its broker while it leads or follows (KIP-113)."""

import pytest
from msgspec.structs import replace
from tests.unit.replica.conftest import AT
from tests.unit.replica.storage.test_directories import HOME, Jbod, directory

from strandline.base.effects import Sync
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, TopicPartition, Uuid
from strandline.log.checkpoints import format_topic_ids, parse_topic_ids
from strandline.log.log import Appended, Log
from strandline.metadata import records as r
from strandline.metadata.image import BROKER_RESOURCE
from strandline.replica.hosting.follower import Cut, Follower
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.rows import TOPIC_IDS
from strandline.replica.storage.moving import future
from strandline.replica.storage.moving import futures as futures_module
from strandline.replica.storage.moving.futures import Futures
from strandline.wire.batch import build
from strandline.wire.control import EndTxnMarker

E = ErrorCode
T0 = TopicPartition("t", 0)


@pytest.fixture
def jbod() -> Jbod:
    made = Jbod()
    made.create_in(*HOME)
    for _ in range(5):
        made.produce(1, 3)
        made.run(200)
    return made


def futures(jbod: Jbod, node: int = 1) -> Futures:
    return jbod.nodes[NodeId(node)].futures


def move(jbod: Jbod, path: str, node: int = 1) -> ErrorCode:
    return futures(jbod, node).alter(T0, path, jbod.now)


def hosted(jbod: Jbod, node: int = 1) -> Hosted:
    found = jbod.nodes[NodeId(node)].host.partitions.find(AT)
    assert found is not None
    return found


def content(log: Log) -> list[tuple[int, int, int]]:
    return [(h.base_offset, h.crc, h.partition_leader_epoch) for h in log.headers(log.log_start_offset)]


def test_a_log_that_has_moved_waits_still_for_a_marker_that_is_not_committed(jbod: Jbod) -> None:
    jbod.cut = {NodeId(2), NodeId(3)}
    log = hosted(jbod).log
    rows = [(jbod.now, None, b"v", ())]
    batch = build(rows, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    first = log.append_as_leader(bytearray(batch), 0, jbod.now, may_begin=True)
    log.append_marker(7, 1, EndTxnMarker(True, 0), 0, jbod.now, 2)
    assert isinstance(first, Appended)
    assert move(jbod, "/d1") is E.NONE
    jbod.run(1_000)
    assert jbod.path(1) == "/d1"
    moved = hosted(jbod).log
    assert moved is not log
    assert [moved.last_stable_offset(first.base_offset + count) for count in (1, 2)] == [first.base_offset, 17]


@pytest.mark.parametrize("node", [1, 2])
def test_a_replica_moves_and_goes_on_in_its_role(jbod: Jbod, node: int) -> None:
    before = content(hosted(jbod, node).log)
    role = hosted(jbod, node).role
    assert move(jbod, "/d1", node) is E.NONE
    jbod.run(1_000)
    assert jbod.path(node) == "/d1"
    assert jbod.known()[node - 1] == directory(node, 1)
    after = hosted(jbod, node)
    assert after.role is role
    assert role is not None
    assert role.log is after.log
    assert content(after.log) == before
    answer = jbod.produce(1, 2)
    jbod.run(1_000)
    assert answer().error_code == E.NONE
    assert jbod.ends() == [17, 17, 17]
    names = jbod.disks[NodeId(node)]
    assert [name for name in names.list("/d0") if name.startswith("t-0")] == []
    assert [name for name in names.list("/d1") if name.startswith("t-0")] == ["t-0"]


def test_the_future_log_has_kafkas_name(jbod: Jbod) -> None:
    move(jbod, "/d1")
    assert f"t-0.{AT.topic_id.hex()}-future" in jbod.disks[NodeId(1)].list("/d1")


def test_before_it_takes_over_its_topic_id_is_durable(jbod: Jbod) -> None:
    """The checkpoints that speak for it then would speak for a log of nobody after a loss of power."""
    move(jbod, "/d1")
    jbod.run(1_000)
    synced = [path for _, effect in jbod.sent_by if isinstance(effect, Sync) for path in effect.paths]
    assert f"/d1/t-0.{AT.topic_id.hex()}-future/partition.metadata" in synced


def test_its_directory_says_whose_it_is_and_not_what_it_said_of_an_earlier_topic_of_the_name(jbod: Jbod) -> None:
    """A start would give the log the id that is in this row, had the log lost its own."""
    disk, path = jbod.disks[NodeId(1)], f"/d1/{TOPIC_IDS}"
    disk.write_file(path, format_topic_ids({T0: Uuid(b"an earlier topic")}))
    move(jbod, "/d1")
    jbod.run(1_000)
    assert jbod.path(1) == "/d1"
    assert parse_topic_ids(disk.read_file(path) or b"") == {T0: AT.topic_id}


def test_it_takes_over_only_after_the_controller_knows(jbod: Jbod) -> None:
    """Else the loss of the new directory would be nobody's, and the leader stay where it cannot serve."""
    jbod.controller_answers = False
    move(jbod, "/d1")
    jbod.run(1_000)
    assert jbod.path(1) == "/d0"
    assert futures(jbod).moving[AT].is_durable
    jbod.controller_answers = True
    jbod.answer_controller()
    jbod.run(1_000)
    assert jbod.path(1) == "/d1"


def test_what_comes_meanwhile_comes_along(jbod: Jbod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(futures_module, "STEP_BYTES", 1)
    monkeypatch.setattr(future, "READ_BYTES", 1)
    move(jbod, "/d1")
    for _ in range(10):
        jbod.produce(1, 2)
        jbod.run(20)
    jbod.run(1_000)
    assert jbod.path(1) == "/d1"
    assert hosted(jbod).log.log_end_offset == 35
    assert content(hosted(jbod).log) == content(hosted(jbod, 2).log)


def test_one_step_copies_no_more_than_its_share(jbod: Jbod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(futures_module, "STEP_BYTES", 1)
    monkeypatch.setattr(future, "READ_BYTES", 1)
    move(jbod, "/d1")
    ends = []
    for _ in range(4):
        jbod.run(futures_module.STEP_MS)
        ends.append(futures(jbod).moving[AT].log.log_end_offset)
    assert ends == [3, 6, 9, 12]


def test_the_rate_is_kept() -> None:
    jbod = Jbod(1)
    jbod.create_in(directory(1, 0))
    for _ in range(50):
        jbod.produce(1, 3)
    size = hosted(jbod).log.size_bytes
    moves = jbod.nodes[NodeId(1)].futures
    moves.host.config = replace(moves.host.config, alter_log_dirs_rate=size // 10)
    move(jbod, "/d1")
    jbod.run(3_000)
    copied = moves.moving[AT].log.size_bytes
    assert size * 2 // 10 <= copied <= size * 5 // 10
    jbod.run(20_000)
    assert jbod.path(1) == "/d1"


@pytest.mark.parametrize("broker", ["1", ""], ids=["for one broker", "for all brokers"])
def test_the_rate_of_a_move_that_runs_is_changed_both_ways(broker: str) -> None:
    jbod = Jbod(1)
    jbod.create_in(directory(1, 0))
    for _ in range(100):
        jbod.produce(1, 3)
    size = hosted(jbod).log.size_bytes
    set_rate(jbod, broker, str(size // 10))
    move(jbod, "/d1")
    moving = futures(jbod).moving[AT]
    jbod.run(2_000)
    early = moving.log.size_bytes
    assert size // 10 <= early <= size * 4 // 10
    set_rate(jbod, broker, "0")
    jbod.run(20_000)
    assert moving.log.size_bytes == early, "lowered: it stands still"
    set_rate(jbod, broker, None)
    jbod.run(200)
    assert jbod.path(1) == "/d1", "and without a bound it is done at once"


def set_rate(jbod: Jbod, broker: str, value: str | None) -> None:
    jbod.commit(
        r.ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=broker, name=futures_module.RATE, value=value),
    )


def test_where_the_current_log_was_cut_the_future_one_is_cut_too(jbod: Jbod) -> None:
    jbod.controller_answers = False
    move(jbod, "/d1", 2)
    jbod.run(100)
    assert futures(jbod, 2).moving[AT].log.log_end_offset == 15
    follower = hosted(jbod, 2).role
    assert type(follower) is Follower
    jbod.cut = {NodeId(2)}
    follower.perform(Cut(9, False, "of the test"), jbod.now)
    hosted(jbod, 2).log.append_as_follower(other_batch(9, epoch=4), 4, jbod.now)
    jbod.run(100)
    assert content(futures(jbod, 2).moving[AT].log) == content(hosted(jbod, 2).log)


def other_batch(base: int, epoch: int) -> bytes:
    from tests.unit.replica.conftest import a_batch

    from strandline.wire.batch import patch, read_header

    buffer = bytearray(a_batch(2))
    patch(memoryview(buffer), read_header(memoryview(buffer)), base, epoch)
    return bytes(buffer)


def test_deleted_records_are_not_copied_and_those_copied_are_deleted(jbod: Jbod) -> None:
    hosted(jbod).log.advance_log_start(7)  # in the middle of a batch
    jbod.controller_answers = False
    move(jbod, "/d1")
    jbod.run(100)
    copy = futures(jbod).moving[AT].log
    assert (copy.log_start_offset, copy.log_end_offset) == (7, 15)
    hosted(jbod).log.advance_log_start(15)
    jbod.run(100)
    assert (copy.log_start_offset, copy.log_end_offset) == (15, 15)


def test_an_epoch_without_records_moves_along(jbod: Jbod) -> None:
    jbod.change(leader=1, isr=(1, 2, 3))  # a new epoch, and nothing is written in it
    move(jbod, "/d1")
    jbod.run(1_000)
    assert jbod.path(1) == "/d1"
    assert hosted(jbod).log.latest_epoch == 1
    assert hosted(jbod).log.end_offset_for_epoch(0) == (0, 15)


REFUSED = [
    ("a directory that is none of its", "/nowhere", T0, E.LOG_DIR_NOT_FOUND),
    ("a replica that is not here", "/d1", TopicPartition("t", 7), E.REPLICA_NOT_AVAILABLE),
    ("where it lies already", "/d0", T0, E.NONE),
    ("where it lies already, with a slash", "/d0/", T0, E.NONE),
]


@pytest.mark.parametrize(("title", "path", "name", "error"), REFUSED, ids=[row[0] for row in REFUSED])
def test_nothing_moves(jbod: Jbod, title: str, path: str, name: TopicPartition, error: ErrorCode) -> None:
    assert futures(jbod).alter(name, path, jbod.now) is error
    assert futures(jbod).moving == {}


def test_a_directory_that_is_offline_is_a_storage_error(jbod: Jbod) -> None:
    jbod.fail(1, "/d1")
    assert move(jbod, "/d1") is E.KAFKA_STORAGE_ERROR
    jbod.perform(NodeId(1), [])
    assert move(jbod, "/d1") is E.KAFKA_STORAGE_ERROR
    assert jbod.path(1) == "/d0", "the current log is as it was"
    assert type(hosted(jbod).role).__name__ == "Leader"


def test_a_replica_whose_directory_is_offline_cannot_move(jbod: Jbod) -> None:
    jbod.fail(1, "/d0")
    jbod.produce(1, 1)
    assert move(jbod, "/d1") is E.KAFKA_STORAGE_ERROR


def test_what_is_still_to_be_created_is_created_where_it_was_wished() -> None:
    jbod = Jbod()
    assert futures(jbod).alter(T0, "/d1", jbod.now) is E.REPLICA_NOT_AVAILABLE
    from strandline.metadata.image import UNASSIGNED_DIRECTORY

    jbod.create_in(*[UNASSIGNED_DIRECTORY] * 3)
    assert [jbod.path(node) for node in (1, 2)] == ["/d1", "/d0"]


def test_a_move_is_taken_back(jbod: Jbod) -> None:
    jbod.controller_answers = False
    move(jbod, "/d1")
    jbod.run(1_000)
    assert move(jbod, "/d0") is E.NONE
    jbod.controller_answers = True
    jbod.answer_controller()
    jbod.run(1_000)
    assert jbod.path(1) == "/d0"
    assert jbod.known()[0] == directory(1, 0), "T41: the controller has the last word that it was told"
    assert [name for name in jbod.disks[NodeId(1)].list("/d1") if name.startswith("t-0")] == []


@pytest.mark.parametrize("root", ["/d0", "/d1"])
def test_a_directory_fails_in_the_middle(jbod: Jbod, root: str) -> None:
    jbod.controller_answers = False
    move(jbod, "/d1")
    jbod.run(100)
    jbod.fail(1, root)
    jbod.controller_answers = True
    jbod.held.clear()
    jbod.produce(1, 1)
    jbod.run(50_000)
    assert futures(jbod).moving == {}
    if root == "/d0":
        assert jbod.nodes[NodeId(1)].host.partitions.find(AT) is None
    else:
        assert jbod.path(1) == "/d0"
    assert jbod.known()[0] == directory(1, 0)


def test_the_old_directory_fails_when_the_controller_has_the_replica_in_the_new_one_already(jbod: Jbod) -> None:
    """It would take it for a live one: nothing but what is lost with the old directory could say that it is none."""
    jbod.controller_answers = False
    move(jbod, "/d1")
    jbod.run(1_000)
    jbod.controller_answers = True
    jbod.answer_controller()
    assert (jbod.path(1), jbod.known()[0]) == ("/d0", directory(1, 1)), "it is about to take over"
    jbod.fail(1, "/d0")
    jbod.produce(1, 1)
    jbod.run(1_000)
    assert jbod.nodes[NodeId(1)].host.partitions.find(AT) is None
    assert jbod.known()[0] == directory(1, 0)


@pytest.mark.parametrize("clean", [True, False])
def test_a_move_outlives_a_restart_and_believes_no_file_of_the_copy(
    jbod: Jbod, monkeypatch: pytest.MonkeyPatch, clean: bool
) -> None:
    monkeypatch.setattr(futures_module, "STEP_BYTES", 1)
    monkeypatch.setattr(future, "READ_BYTES", 1)
    move(jbod, "/d1", 3)
    jbod.run(25)
    copied = futures(jbod, 3).moving[AT]
    assert copied.log.log_end_offset == 6
    if clean:
        jbod.nodes[NodeId(3)].shutdown(jbod.now)
    jbod.kill(NodeId(3))
    disk = jbod.disks[NodeId(3)]
    segment = f"{copied.path}/{0:020d}.log"
    whole = disk.read_file(segment)
    assert whole is not None
    disk.write_file(segment, whole[:-1] + bytes([whole[-1] ^ 1]))
    jbod.start(NodeId(3), clean=clean)
    assert futures(jbod, 3).moving[AT].log.log_end_offset == 0
    jbod.run(1_000)
    assert jbod.path(3) == "/d1"
    assert content(hosted(jbod, 3).log) == content(hosted(jbod, 1).log)
    assert jbod.ends() == [15, 15, 15]


def test_a_topic_that_is_deleted_takes_its_future_along(jbod: Jbod) -> None:
    from strandline.metadata import records as r

    jbod.controller_answers = False
    move(jbod, "/d1")
    jbod.run(100)
    jbod.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    for root in ("/d0", "/d1"):
        assert [name for name in jbod.disks[NodeId(1)].list(root) if name.startswith("t-0")] == []
    assert futures(jbod).moving == {}


@pytest.mark.parametrize("node", [1, 2])
def test_a_directory_that_fails_while_a_moving_replica_is_deleted_leaves_nothing_that_copies(
    jbod: Jbod, node: int
) -> None:
    """The move is dropped first, and that writes."""
    assert move(jbod, "/d1", node) is E.NONE
    jbod.fail(node, "/d0")
    jbod.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    replicas = jbod.nodes[NodeId(node)]
    assert AT not in futures(jbod, node).moving
    assert not list(replicas.host.partitions.all())
    assert not any(AT in fetcher.partitions for fetcher in replicas.fetchers.by_leader.values())
