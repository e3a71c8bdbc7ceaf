"""Which replicas of a broker are whole, and what its files say of that."""

import pytest
from tests.unit.replica.conftest import AT, World
from tests.unit.replica.disk import DictDisk
from tests.unit.replica.storage.test_directories import HOME, Jbod

from strandline.base.ids import NOBODY, ZERO_UUID, NodeId, TopicIdPartition, Uuid
from strandline.base.ports import DiskError, DiskFull
from strandline.log.evidence.clean_shutdown import Place
from strandline.log.evidence.wholeness import FILE, Vouched, take_vouched
from strandline.replica.hosting.wholeness import WholeLogs

PLACE = Place("cluster", 1, (("/d1", Uuid(b"1" * 16)), ("/d2", Uuid(b"2" * 16))))
BEFORE, NOW = Uuid(b"p" * 16), Uuid(b"q" * 16)
A, B, C = (TopicIdPartition(Uuid(b"t" * 16), partition) for partition in range(3))


def begun(disk: DictDisk, vouched: Vouched | None = None) -> WholeLogs:
    whole = WholeLogs(disk)
    whole.begin(PLACE, vouched)
    return whole


def on_disk(disk: DictDisk) -> Vouched | None:
    """What the next start would read; the files stay."""
    files = {path: bytes(file.content) for path, file in disk.files.items()}
    found = take_vouched(disk, PLACE, is_clean=False)
    for path, content in files.items():
        disk.write_file(path, content)
    return found


def vouched(*first: TopicIdPartition) -> Vouched:
    return Vouched(BEFORE, {"/d1": frozenset(first), "/d2": frozenset([C])})


def test_a_start_takes_over_what_was_whole_and_is_sound_where_it_was() -> None:
    whole = begun(DictDisk(), vouched(A, B))
    whole.opened(A, "/d1", is_sound=True)
    whole.opened(B, "/d1", is_sound=False)
    whole.opened(C, "/d1", is_sound=True)
    assert list(whole.logs) == [A]


def test_what_is_opened_later_is_in_doubt() -> None:
    whole = begun(DictDisk(), vouched(A))
    whole.all_opened()
    whole.opened(A, "/d1", is_sound=True)
    assert not whole.logs


def test_until_this_process_is_registered_the_files_are_the_last_ones() -> None:
    disk = DictDisk()
    whole = begun(disk, vouched(A))
    whole.opened(A, "/d1", is_sound=True)
    assert on_disk(disk) is None, "a kill in the middle of a start leaves everything in doubt"
    whole.all_opened()
    found = on_disk(disk)
    assert found is not None
    assert (found.process, found.logs["/d1"]) == (BEFORE, {A})
    whole.registered(NOW, follows_on=True)
    found = on_disk(disk)
    assert found is not None
    assert (found.process, found.logs["/d1"]) == (NOW, {A})


def test_while_many_logs_are_created_the_files_are_written_for_those_that_go_alone() -> None:
    disk = DictDisk()
    whole = begun(disk)
    whole.add(C, "/d2")
    whole.registered(NOW, follows_on=True)
    whole.more_come = True
    whole.add(A, "/d1")
    whole.save_changes()
    found = on_disk(disk)
    assert found is not None and not found.logs["/d1"]
    whole.forget(C)
    whole.save_changes()
    found = on_disk(disk)
    assert found is not None and not found.logs["/d2"]
    whole.add(B, "/d1")
    whole.more_come = False
    whole.save_changes()
    found = on_disk(disk)
    assert found is not None and found.logs["/d1"] == {A, B}


def test_a_process_that_does_not_follow_on_the_one_that_vouched_has_nothing_that_is_whole() -> None:
    disk = DictDisk()
    whole = begun(disk, vouched(A))
    whole.opened(A, "/d1", is_sound=True)
    whole.all_opened()
    whole.registered(NOW, follows_on=False)
    assert not whole.logs
    assert on_disk(disk) == Vouched(NOW, {"/d1": frozenset(), "/d2": frozenset()})


def test_the_files_follow_when_they_are_asked_for_and_only_if_anything_changed() -> None:
    disk = DictDisk()
    whole = begun(disk)
    whole.all_opened()
    whole.add(A, "/d1")
    whole.add(B, "/d2")
    before = on_disk(disk)
    whole.save_changes()
    assert before != on_disk(disk) == Vouched(ZERO_UUID, {"/d1": frozenset([A]), "/d2": frozenset([B])})
    disk.files.clear()
    whole.add(A, "/d1")
    whole.save_changes()
    assert not disk.files
    whole.forget(A)
    whole.save_changes()
    assert on_disk(disk) == Vouched(ZERO_UUID, {"/d1": frozenset(), "/d2": frozenset([B])})


def test_what_comes_into_doubt_is_so_on_disk_at_once() -> None:
    disk = DictDisk()
    whole = begun(disk)
    whole.add(A, "/d1")
    whole.save()
    whole.discard(A)
    assert on_disk(disk) == Vouched(ZERO_UUID, {"/d1": frozenset(), "/d2": frozenset()})


def test_a_replica_that_moved_is_whole_in_the_directory_where_it_is() -> None:
    disk = DictDisk()
    whole = begun(disk)
    whole.add(A, "/d1")
    whole.add(A, "/d2")
    whole.save_changes()
    assert on_disk(disk) == Vouched(ZERO_UUID, {"/d1": frozenset(), "/d2": frozenset([A])})


def test_a_stop_in_order_makes_the_files_durable_and_nothing_else_waits_for_the_disk() -> None:
    disk = DictDisk()
    whole = begun(disk)
    whole.add(A, "/d1")
    whole.save_changes()
    assert not disk.synced
    whole.save(durably=True)
    assert disk.synced == [f"/d1/{FILE}", f"/d2/{FILE}"]


def test_after_the_end_nothing_is_whole_and_no_file_says_otherwise() -> None:
    disk = DictDisk()
    whole = begun(disk)
    whole.add(A, "/d1")
    whole.save()
    whole.end()
    assert not whole.logs
    whole.add(B, "/d1")
    whole.save_changes()
    assert not disk.files


@pytest.mark.parametrize("error", [DiskError("broken"), DiskFull("full")])
def test_a_disk_that_does_not_take_the_files_ends_it(error: DiskError, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = DictDisk()
    whole = begun(disk)
    whole.add(A, "/d1")
    whole.save()

    def fail(path: str, content: bytes) -> None:
        if path.startswith("/d2"):
            raise error

    monkeypatch.setattr(disk, "write_file", fail)
    whole.discard(A)
    assert not whole.logs
    assert not disk.files, "an older file would still name it"


# --- by what replicas become whole, and no longer are


def is_whole(world: World, node: int) -> bool:
    return AT in world.nodes[NodeId(node)].host.whole.logs


@pytest.fixture
def world() -> World:
    made = World()
    made.create()
    made.produce(1, 5)
    made.run(1000)
    return made


def test_a_leader_is_whole_and_so_is_an_in_sync_replica(world: World) -> None:
    assert [is_whole(world, node) for node in (1, 2, 3)] == [True, True, True]


def restarted(world: World, node: int) -> None:
    """After a stop that was not in order, and of which no file says which logs are whole."""
    world.kill(NodeId(node))
    world.change(isr=tuple(other for other in (1, 2, 3) if other != node))
    world.cut = {NodeId(node)}  # or it would be back in the ISR at once
    world.start(NodeId(node), clean=False)


def test_a_follower_in_doubt_is_whole_when_it_is_in_the_isr_of_a_leader_again(world: World) -> None:
    restarted(world, 3)
    assert not is_whole(world, 3), "it has a role, and may lack anything"
    world.change(isr=(1, 2, 3))
    assert is_whole(world, 3)


def test_a_member_of_an_isr_that_nobody_leads_is_not_whole_by_that(world: World) -> None:
    """Without ELR the last one stays, whatever it lost."""
    world.kill(NodeId(3))
    world.change(isr=(3,), leader=NOBODY)
    world.start(NodeId(3), clean=False)
    assert not is_whole(world, 3)
    world.change(leader=3)
    assert is_whole(world, 3), "what it has is the log from now on, and the ledger says what may be missing"


def test_a_replica_that_is_withdrawn_is_whole_no_longer(world: World) -> None:
    world.nodes[NodeId(3)].withdrawing.withdraw(AT, 3, 4, world.now)
    assert not is_whole(world, 3)


def test_a_log_that_is_gone_is_not_whole(world: World) -> None:
    replicas = world.nodes[NodeId(3)]
    hosted = replicas.host.partitions.find(AT)
    assert hosted is not None
    replicas.host.drop(hosted)
    assert not is_whole(world, 3)


def test_a_directory_that_fails_takes_the_word_for_all_others_with_it() -> None:
    jbod = Jbod()
    jbod.create_in(*HOME)
    jbod.produce(1, 3)
    assert is_whole(jbod, 1)
    whole = jbod.nodes[NodeId(1)].host.whole
    whole.add(A, "/d1")
    jbod.fail(1, "/d0")
    jbod.produce(1, 1)
    assert not whole.logs


def test_so_does_one_that_the_broker_cannot_go_on_without(world: World) -> None:
    """The next start finds no file, though the system runs on."""
    replicas, place = world.nodes[NodeId(3)], Place("cluster", 3, (("/data3", Uuid(b"3" * 16)),))
    whole = replicas.host.whole
    whole.begin(place, None)
    whole.save()
    assert world.disks[NodeId(3)].exists(f"/data3/{FILE}")
    with pytest.raises(DiskError):
        replicas.host.fail(replicas.host.directories.live[0], DiskError("a flush failed"))
    assert not whole.logs
    assert not world.disks[NodeId(3)].exists(f"/data3/{FILE}")


def test_the_files_say_it_in_the_step_in_which_metadata_does(world: World) -> None:
    """A kill may follow at once."""
    disk, place = world.disks[NodeId(3)], Place("cluster", 3, (("/data3", Uuid(b"3" * 16)),))
    whole = world.nodes[NodeId(3)].host.whole
    whole.begin(place, None)
    whole.all_opened()
    whole.logs.clear()
    world.change(isr=(1, 2, 3))
    found = take_vouched(disk, place, is_clean=False)
    assert found is not None
    assert found.logs["/data3"] == {AT}
