"""Brokers with two log directories, one of which fails (KIP-858)."""

from typing import Any

import pytest
from tests.unit.replica.conftest import AT, World, registration

from strandline.base.effects import AwaitRoom, Save, Sync, SyncFailed, ToController
from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, NodeId, TopicIdPartition, Uuid
from strandline.base.ports import DiskError, DiskFull
from strandline.log.directory import write_partition_metadata
from strandline.metadata import records as r
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.image import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from strandline.replica.config import LogDir
from strandline.replica.hosting.directories import Directories
from strandline.replica.hosting.leader import Leader
from strandline.replica.storage.moving.assignments import REPLICAS_MAX
from strandline.replica.tokens import CheckpointSaved
from strandline.sim.world.disk import SimDisk
from strandline.wire.messages.brokers.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryDataResponse,
)
from strandline.wire.messages.brokers.assign_replicas_to_dirs import PartitionDataResponse as AssignedPartition
from strandline.wire.messages.brokers.assign_replicas_to_dirs import TopicDataResponse as AssignedTopic

E = ErrorCode
ROOTS = ("/d0", "/d1")


def directory(node: int, number: int) -> Uuid:
    return Uuid(bytes([node, number] * 8))


class Jbod(World):
    """`dead`: directories that the next start finds unreadable."""

    dead: tuple[str, ...] = ()

    def __init__(self, brokers: int = 3, static: dict[str, ConfigValue] | None = None) -> None:
        super().__init__(0, static=static)
        for node in map(NodeId, range(1, brokers + 1)):
            self.disks[node] = SimDisk(ROOTS)  # type: ignore[assignment]
            self.start(node)
        for node in self.nodes:
            self.commit(registration(node, log_dirs=(directory(node, 0), directory(node, 1))))

    def directories(self, node: NodeId) -> Directories:
        every = [LogDir(root, directory(node, number)) for number, root in enumerate(ROOTS)]
        dead = [LogDir(log_dir.path, ZERO_UUID) for log_dir in every if log_dir.path in self.dead]
        return Directories([log_dir for log_dir in every if log_dir.path not in self.dead], dead)

    def create_in(self, *where: Uuid, leader: int = 1) -> None:
        """t-0, its replica on broker 1 in the first of these directories, and so on."""
        self.create(leader=leader, replicas=tuple(range(1, len(where) + 1)), directories=where)

    def fail(self, node: int, root: str) -> None:
        self.disks[NodeId(node)].fail(root)  # type: ignore[attr-defined]

    def known(self) -> tuple[Uuid, ...]:
        partition = self.image.partition(AT)
        assert partition is not None
        return partition.directories

    def path(self, node: int) -> str:
        hosted = self.nodes[NodeId(node)].host.partitions.find(AT)
        assert hosted is not None
        return hosted.directory.path

    def assigned(self) -> list[tuple[int, Uuid]]:
        """Who told the controller of which directory."""
        return [
            (node, row.id)
            for node, effect in self.sent_by
            if isinstance(effect, ToController) and isinstance(effect.message, AssignReplicasToDirsRequest)
            for row in effect.message.directories
        ]


@pytest.fixture
def jbod() -> Jbod:
    return Jbod()


HOME = tuple(directory(node, 0) for node in (1, 2, 3))


def test_a_replica_lies_where_metadata_says(jbod: Jbod) -> None:
    jbod.create_in(directory(1, 1), directory(2, 0), directory(3, 1))
    assert [jbod.path(node) for node in (1, 2, 3)] == ["/d1", "/d0", "/d1"]
    assert jbod.assigned() == []


def test_where_it_says_nothing_the_broker_chooses_and_tells(jbod: Jbod) -> None:
    jbod.create_in(*[UNASSIGNED_DIRECTORY] * 3)
    jbod.run(1_000)
    assert jbod.known() == HOME
    assert len(jbod.assigned()) == 3


def test_of_a_full_directory_an_operator_hears_how_much_is_free_and_what_to_do(jbod: Jbod) -> None:
    jbod.create_in(*HOME)
    disk: Any = jbod.disks[NodeId(1)]
    disk.capacity = disk.used
    failing = jbod.produce(1, 2)
    assert failing().error_code == E.KAFKA_STORAGE_ERROR
    (reported,) = [text for text in jbod.reports if "/d0 is full" in text]
    assert "t-0/00000000000000000000.log: No space left on device" in reported
    assert "0.0 MiB of 0.0 MiB are free" in reported
    assert "0.0 MiB are needed" in reported
    todo = "Free space there; this broker goes on with the others, and restarts by itself when there is space"
    assert reported.endswith(todo)
    assert [effect.paths for _, effect in jbod.sent_by if isinstance(effect, AwaitRoom)] == [("/d0",)]


def test_a_checkpoint_that_finds_no_room_takes_its_directory_offline(jbod: Jbod) -> None:
    jbod.create_in(*HOME)
    broker, (home, _) = jbod.nodes[NodeId(1)], jbod.nodes[NodeId(1)].host.directories.live
    token = CheckpointSaved(home)
    jbod.perform(NodeId(1), broker.step(SyncFailed(token, "/d0/a: No space left on device", is_full=True), jbod.now))
    assert any("/d0 is full, and offline from now on" in text for text in jbod.reports)
    assert [log_dir.path for log_dir in broker.host.directories.live] == ["/d1"]


def awaited(jbod: Jbod) -> list[tuple[str, ...]]:
    return [effect.paths for _, effect in jbod.sent_by if isinstance(effect, AwaitRoom)]


def test_a_directory_that_failed_is_not_waited_for(jbod: Jbod) -> None:
    jbod.create_in(*HOME)
    jbod.fail(1, "/d0")
    jbod.produce(1, 2)
    assert awaited(jbod) == [()]


def test_nor_is_one_whose_flush_failed_after_it_was_full(jbod: Jbod) -> None:
    """Its files may show what the disk does not have."""
    jbod.create_in(*HOME)
    broker, home = jbod.nodes[NodeId(1)], jbod.nodes[NodeId(1)].host.directories.live[0]
    failures = [("No space left on device", True), ("No space left on device", True), ("Input/output error", False)]
    for why, is_full in failures:
        failed = SyncFailed(CheckpointSaved(home), f"/d0/a: {why}", is_full=is_full)
        jbod.perform(NodeId(1), broker.step(failed, jbod.now))
        jbod.perform(NodeId(1), [])
    assert awaited(jbod) == [("/d0",), ()]
    assert any(
        text == "the log directory /d0 is offline from now on: /d0/a: Input/output error" for text in jbod.reports
    )


def test_nor_is_a_full_one_where_another_one_has_failed() -> None:
    directories = Directories(
        [LogDir("/d0", directory(1, 0)), LogDir("/d1", directory(1, 1))], [LogDir("/d2", ZERO_UUID)]
    )
    directories.fail(directories.live[0], DiskFull("full"))
    assert directories.awaited == ()


def test_with_another_one_that_failed_an_operator_hears_that_he_must_restart_it(jbod: Jbod) -> None:
    jbod.create_in(*HOME)
    host = jbod.nodes[NodeId(1)].host
    host.directories.offline["/d2"] = LogDir("/d2", ZERO_UUID)
    host.fail(host.directories.live[0], DiskFull("/d0/a: No space left on device"))
    jbod.perform(NodeId(1), [])
    (reported,) = [text for text in jbod.reports if "/d0 is full" in text]
    assert reported.endswith("this broker goes on with the others, and must be restarted: another one has failed")


def test_the_last_directory_without_room_ends_the_node_by_an_error_that_says_so(jbod: Jbod) -> None:
    directories = jbod.nodes[NodeId(1)].host.directories
    first, last = directories.live
    directories.fail(first, DiskFull("full"))
    with pytest.raises(DiskFull):
        directories.fail(last, SyncFailed((), "full", is_full=True).error)
    with pytest.raises(DiskError) as other:
        directories.fail(last, SyncFailed((), "broken").error)
    assert not isinstance(other.value, DiskFull)


def test_a_write_that_fails_is_a_storage_error_and_the_others_live_on(jbod: Jbod) -> None:
    jbod.create_in(*HOME)
    waiting = jbod.produce(1, 2)
    jbod.fail(1, "/d0")
    failing = jbod.produce(1, 2)
    assert failing().error_code == E.KAFKA_STORAGE_ERROR
    assert waiting() is not None
    assert jbod.nodes[NodeId(1)].host.partitions.find(AT) is None
    assert any("/d0 is offline" in text for text in jbod.reports)
    assert jbod.produce(1, 2)().error_code == E.KAFKA_STORAGE_ERROR, "for as long as metadata says that it leads"
    assert jbod.consume(1, 0)().error_code == E.KAFKA_STORAGE_ERROR


def test_a_request_that_waits_for_a_commit_is_answered(jbod: Jbod) -> None:
    jbod.create_in(*HOME)
    jbod.cut = {NodeId(2), NodeId(3)}
    waiting = jbod.produce(1, 2)
    assert waiting() is None
    jbod.fail(1, "/d0")
    jbod.produce(1, 2)
    assert waiting().error_code == E.KAFKA_STORAGE_ERROR


def test_another_broker_leads_and_the_failed_replica_is_left_alone(jbod: Jbod) -> None:
    jbod.create_in(*HOME)
    jbod.produce(1, 3)
    jbod.run(1_000)
    jbod.fail(1, "/d0")
    jbod.produce(1, 1)
    jbod.change(leader=2, isr=(2, 3))
    jbod.run(1_000)
    assert type(jbod.nodes[NodeId(2)].host.partitions.find(AT).role) is Leader  # type: ignore[union-attr]
    assert jbod.produce(2, 1)().error_code == E.NONE
    assert jbod.nodes[NodeId(1)].host.partitions.find(AT) is None
    assert not any(AT in fetcher.partitions for fetcher in jbod.nodes[NodeId(1)].fetchers.by_leader.values())


def test_a_follower_whose_directory_fails_copies_no_longer(jbod: Jbod) -> None:
    jbod.create_in(*HOME)
    jbod.fail(2, "/d0")
    answer = jbod.produce(1, 1)
    jbod.run(1_000)
    assert jbod.nodes[NodeId(2)].host.partitions.find(AT) is None
    jbod.change(isr=(1, 3))
    jbod.run(1_000)
    assert answer() is None, "it may come back into the ISR, and has been caught up a moment ago"
    jbod.commit(r.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=102, log_dirs=(directory(2, 1),)))
    assert answer().error_code == E.NONE


def test_the_other_directory_is_served_as_before(jbod: Jbod) -> None:
    jbod.create_in(directory(1, 1), *HOME[1:])
    jbod.fail(1, "/d0")
    jbod.run(10_000)  # checkpoints are saved, and one of them fails
    assert jbod.produce(1, 1) is not None
    jbod.run(1_000)
    assert type(jbod.nodes[NodeId(1)].host.partitions.find(AT).role) is Leader  # type: ignore[union-attr]


def test_the_last_directory_ends_the_process(jbod: Jbod) -> None:
    jbod.create_in(*HOME)
    jbod.fail(1, "/d0")
    jbod.produce(1, 1)
    jbod.commit(r.TopicRecord(name="u", topic_id=Uuid(b"u" * 16)))
    jbod.fail(1, "/d1")
    at = TopicIdPartition(Uuid(b"u" * 16), 0)
    with pytest.raises(DiskError):
        jbod.commit(
            r.PartitionRecord(
                partition_id=0, topic_id=at.topic_id, replicas=(1,), isr=(1,), leader=1, leader_epoch=0,
                partition_epoch=0, directories=(directory(1, 1),),
            )
        )  # fmt: skip


def test_the_metadata_logs_directory_ends_the_process() -> None:
    directories = Directories([LogDir("/d0", directory(1, 0)), LogDir("/d1", directory(1, 1))], vital="/d1")
    with pytest.raises(DiskError):
        directories.fail(directories.live[1], DiskError("broken"))
    assert directories.fail(directories.live[0], DiskError("broken"))


@pytest.mark.parametrize("kind", [Sync, Save])
def test_a_flush_that_fails_takes_the_directory_offline_and_is_not_repeated(jbod: Jbod, kind: Any) -> None:
    jbod.create_in(*HOME)
    jbod.produce(1, 1)
    jbod.run(70_000)
    node = jbod.nodes[NodeId(1)]
    tokens = [effect.token for who, effect in jbod.sent_by if who == 1 and type(effect) is kind]
    assert tokens
    jbod.perform(NodeId(1), node.step(SyncFailed(tokens[0], "broken"), jbod.now))
    jbod.perform(NodeId(1), [])
    assert node.host.partitions.find(AT) is None
    before = len(jbod.sent_by)
    jbod.run(200_000)
    named = [
        path
        for who, effect in jbod.sent_by[before:]
        if who == 1 and isinstance(effect, Sync | Save)
        for path in (effect.paths if isinstance(effect, Sync) else (effect.path,))
    ]
    assert not [path for path in named if path.startswith("/d0")]


def test_a_folder_that_somebody_deletes_is_missed_by_the_next_flush(jbod: Jbod) -> None:
    """The process has its file open, and could write to it for ever; no other one will find what is written there."""
    jbod.create_in(*HOME)
    jbod.disks[NodeId(1)].tamper("/d0/t-0", None)  # type: ignore[attr-defined]
    assert jbod.produce(1, 1) is not None
    jbod.run(70_000)
    node = jbod.nodes[NodeId(1)]
    assert node.host.partitions.find(AT) is None
    assert [log_dir.path for log_dir in node.host.directories.live] == ["/d1"]
    assert AT in node.host.absent


def test_and_by_a_stop_in_order_which_vouches_for_the_other_directory_alone(jbod: Jbod) -> None:
    jbod.create_in(*HOME)
    jbod.produce(1, 1)
    jbod.run(70_000)
    jbod.disks[NodeId(1)].tamper("/d0/t-0", None)  # type: ignore[attr-defined]
    node = jbod.nodes[NodeId(1)]
    node.shutdown(jbod.now)
    node.close()
    assert [log_dir.path for log_dir in node.host.directories.live] == ["/d1"]


def test_a_log_that_cannot_be_closed_takes_its_directory_offline(jbod: Jbod) -> None:
    jbod.create_in(*HOME)
    jbod.produce(1, 1)
    node = jbod.nodes[NodeId(1)]
    node.shutdown(jbod.now)
    jbod.fail(1, "/d0")
    node.close()
    assert [log_dir.path for log_dir in node.host.directories.live] == ["/d1"]


def test_a_failed_directory_of_a_replica_that_metadata_has_elsewhere_is_reported(jbod: Jbod) -> None:
    """It failed before the controller knew that the replica lies there: it would go on taking it for a live one."""
    jbod.controller_answers = False
    jbod.create_in(*[UNASSIGNED_DIRECTORY] * 3)
    jbod.held.clear()
    jbod.fail(1, "/d0")
    jbod.produce(1, 1)
    node = jbod.nodes[NodeId(1)]
    assert node.assignments.wanted == {AT: directory(1, 0)}


def test_after_a_restart_without_it_nothing_is_begun_in_its_place(jbod: Jbod) -> None:
    """An empty log could lead, where the ISR has no other member."""
    jbod.create_in(*[UNASSIGNED_DIRECTORY] * 3)
    jbod.change(directories=(UNASSIGNED_DIRECTORY,) * 3)  # as if it had never been told
    jbod.produce(1, 2)
    jbod.run(1_000)
    jbod.kill(NodeId(1))
    jbod.sent_by.clear()
    jbod.dead = ("/d0",)
    jbod.start(NodeId(1))
    jbod.run(1_000)
    assert jbod.nodes[NodeId(1)].host.partitions.find(AT) is None
    assert jbod.known()[0] == LOST_DIRECTORY
    assert jbod.produce(1, 1)().error_code == E.KAFKA_STORAGE_ERROR
    # And with the directory it is as it was.
    jbod.kill(NodeId(1))
    jbod.dead = ()
    jbod.start(NodeId(1))
    jbod.run(1_000)
    assert jbod.path(1) == "/d0"
    assert jbod.known()[0] == directory(1, 0)


def test_a_partition_that_is_only_now_created_needs_no_dead_directory(jbod: Jbod) -> None:
    jbod.kill(NodeId(1))
    jbod.dead = ("/d0",)
    jbod.start(NodeId(1))
    jbod.create_in(*[UNASSIGNED_DIRECTORY] * 3)
    jbod.run(1_000)
    assert jbod.path(1) == "/d1"
    assert jbod.known()[0] == directory(1, 1)


def test_a_replaced_disk_is_begun_anew_and_told(jbod: Jbod) -> None:
    jbod.create_in(Uuid(b"the disk before "), *HOME[1:])
    jbod.run(1_000)
    assert jbod.known()[0] in (directory(1, 0), directory(1, 1))


@pytest.mark.parametrize(("named", "kept"), [(0, "/d0"), (1, "/d1")])
def test_of_two_logs_of_a_replica_that_counts_which_metadata_names(jbod: Jbod, named: int, kept: str) -> None:
    """The replica was given to this broker anew while its first directory was offline."""
    disk = jbod.disks[NodeId(1)]
    jbod.kill(NodeId(1))
    for root in ROOTS:
        disk.make_directory(f"{root}/t-0")
        write_partition_metadata(disk, f"{root}/t-0", AT.topic_id)
    jbod.start(NodeId(1))
    jbod.create_in(directory(1, named), *HOME[1:])
    assert jbod.path(1) == kept
    gone = "/d1" if kept == "/d0" else "/d0"
    assert "t-0" in disk.list(kept)
    assert "t-0" not in disk.list(gone)


def test_of_two_topics_logs_that_counts_whose_topic_exists(jbod: Jbod) -> None:
    """T39: the name was used again while the directory with the old topic's log was offline."""
    disk = jbod.disks[NodeId(1)]
    jbod.kill(NodeId(1))
    for root, topic_id in zip(ROOTS, (Uuid(b"an older topic t"), AT.topic_id), strict=True):
        disk.make_directory(f"{root}/t-0")
        write_partition_metadata(disk, f"{root}/t-0", topic_id)
    jbod.start(NodeId(1))
    jbod.create_in(directory(1, 1), *HOME[1:])
    assert jbod.path(1) == "/d1"
    assert "t-0" not in disk.list("/d0")
    assert jbod.nodes[NodeId(1)].host.partitions.named("t", 0) is jbod.nodes[NodeId(1)].host.partitions.find(AT)


# --- AssignReplicasToDirs: one in flight, the latest wish


def sent_assignment(jbod: Jbod) -> ToController:
    (only,) = jbod.nodes[NodeId(1)].assignments.flush()
    assert isinstance(only, ToController)
    return only


def answer_of(asked: ToController, error: E = E.NONE) -> Any:
    world = Jbod(0)
    response = world.assign(asked.message)
    if error is E.NONE:
        return response
    return AssignReplicasToDirsResponse(error_code=error)


def test_an_assignment_that_is_overtaken_is_reported_anew(jbod: Jbod) -> None:
    """T41: the answer to an older wish does not settle a newer one."""
    assignments = jbod.nodes[NodeId(1)].assignments
    assignments.lies(AT, directory(1, 0), UNASSIGNED_DIRECTORY)
    first = sent_assignment(jbod)
    assignments.lies(AT, directory(1, 1), UNASSIGNED_DIRECTORY)
    assert assignments.flush() == [], "one is in flight"
    assignments.answered(answer_of(first), jbod.now)
    second = sent_assignment(jbod)
    assert second.message.directories[0].id == directory(1, 1)
    assignments.answered(answer_of(second), jbod.now)
    assert assignments.flush() == []


@pytest.mark.parametrize("fate", ["no answer", E.STALE_BROKER_EPOCH, E.NOT_CONTROLLER])
def test_an_assignment_is_retried(jbod: Jbod, fate: Any) -> None:
    node = jbod.nodes[NodeId(1)]
    node.assignments.lies(AT, directory(1, 0), UNASSIGNED_DIRECTORY)
    asked = sent_assignment(jbod)
    if fate == "no answer":
        node.assignments.failed(jbod.now)
    else:
        node.assignments.answered(answer_of(asked, fate), jbod.now)
    assert node.assignments.flush() == [], "not at once"
    jbod.run(1_000)
    assert jbod.assigned() == [(1, directory(1, 0))]


def test_a_row_that_was_refused_is_asked_again(jbod: Jbod) -> None:
    """T41: the others of its request are settled."""
    node = jbod.nodes[NodeId(1)]
    other = TopicIdPartition(AT.topic_id, 1)
    for at in (AT, other):
        node.assignments.lies(at, directory(1, 0), UNASSIGNED_DIRECTORY)
    asked = sent_assignment(jbod)
    rows = (
        AssignedPartition(partition_index=0, error_code=E.UNKNOWN_TOPIC_ID),
        AssignedPartition(partition_index=1),
    )
    answer = AssignReplicasToDirsResponse(
        directories=(
            DirectoryDataResponse(
                id=asked.message.directories[0].id, topics=(AssignedTopic(topic_id=AT.topic_id, partitions=rows),)
            ),
        )
    )
    node.assignments.answered(answer, jbod.now)
    assert list(node.assignments.wanted) == [AT]
    assert node.assignments.flush() == [], "not at once"
    jbod.run(1_000)
    assert jbod.assigned() == [(1, directory(1, 0))]


def test_a_request_is_bounded(jbod: Jbod) -> None:
    assignments = jbod.nodes[NodeId(1)].assignments
    for index in range(REPLICAS_MAX + 1):
        assignments.lies(TopicIdPartition(AT.topic_id, index), directory(1, 0), UNASSIGNED_DIRECTORY)
    first = sent_assignment(jbod)
    assert sum(len(t.partitions) for d in first.message.directories for t in d.topics) == REPLICAS_MAX
    assignments.answered(answer_of(first), jbod.now)
    assert sum(len(t.partitions) for d in sent_assignment(jbod).message.directories for t in d.topics) == 1


def test_nothing_is_reported_before_this_broker_is_registered(jbod: Jbod) -> None:
    node = jbod.nodes[NodeId(1)]
    node.broker_epoch = -1  # type: ignore[assignment]
    node.assignments.lies(AT, directory(1, 0), UNASSIGNED_DIRECTORY)
    assert node.assignments.flush() == []
