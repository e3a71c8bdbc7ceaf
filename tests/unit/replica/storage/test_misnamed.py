"""Somebody exchanged files by hand, after a stop of which no inventory is left: a folder has another topic's id."""

from collections.abc import Callable
from random import Random

import pytest
from tests.unit.replica.conftest import AT, World, a_batch
from tests.unit.replica.disk import DictDisk
from tests.unit.replica.losses.test_losing import noted
from tests.unit.replica.storage.test_directories import Jbod, directory

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.ids import BrokerEpoch, NodeId, TopicIdPartition, Uuid
from strandline.base.ports import DiskError
from strandline.metadata import records as r
from strandline.metadata.image import Image
from strandline.metadata.losses import AT_MOST
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.replicas import Replicas

ME = NodeId(2)
OTHER = TopicIdPartition(Uuid(b"another topic id"), 0)
TOPIC_IDS = "topic-id-checkpoint"
ID_FILE = "partition.metadata"
Tree = dict[str, bytes]


def with_u(world: World, directories: tuple[Uuid, ...] = ()) -> World:
    """u-0 beside t-0, on the same brokers."""
    nodes = tuple(world.nodes)
    world.commit(
        r.TopicRecord(name="u", topic_id=OTHER.topic_id),
        r.PartitionRecord(
            topic_id=OTHER.topic_id,
            partition_id=0,
            replicas=nodes,
            isr=nodes,
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=directories or tuple(Uuid(bytes([node]) * 16) for node in nodes),
        ),
    )
    return world


def ignored(*_: object) -> list[Effect]:
    return []


@pytest.fixture
def world() -> World:
    """t-0 has six records and u-0 two, all committed. Broker 2, which follows, has stopped."""
    made = World()
    made.create()
    with_u(made)
    made.run(1_000)
    for _ in range(6):
        made.produce(1)
    made.perform(NodeId(1), made.nodes[NodeId(1)].append_internal("u", 0, bytearray(a_batch(2)), made.now, ignored))
    made.run(70_000)
    assert [the(made, at).high_watermark for at in (AT, OTHER)] == [6, 2]
    made.nodes[ME].shutdown(made.now)
    made.nodes[ME].close()
    made.kill(ME)
    made.reports.clear()
    return made


def the(world: World, at: TopicIdPartition, node: int = ME) -> Hosted:
    hosted = world.nodes[NodeId(node)].host.partitions.find(at)
    assert hosted is not None
    return hosted


def content(world: World, at: TopicIdPartition, node: int = ME) -> bytes:
    log = the(world, at, node).log
    return bytes(world.disks[NodeId(node)].read_file(f"{log.directory}/{0:020d}.log") or b"")


def tree(disk: DictDisk, folder: str) -> Tree:
    return {
        path.removeprefix(folder): bytes(file.content)
        for path, file in disk.files.items()
        if path.startswith(f"{folder}/")
    }


def put(disk: DictDisk, folder: str, files: Tree) -> None:
    if disk.exists(folder):
        disk.remove_tree(folder)
    disk.make_directory(folder)
    for name, data in files.items():
        disk.write_file(folder + name, data)


def ids_swapped(disk: DictDisk, t: Tree, u: Tree) -> None:
    put(disk, "/data2/t-0", t | {f"/{ID_FILE}": u[f"/{ID_FILE}"]})
    put(disk, "/data2/u-0", u | {f"/{ID_FILE}": t[f"/{ID_FILE}"]})


def folders_swapped(disk: DictDisk, t: Tree, u: Tree) -> None:
    put(disk, "/data2/t-0", u)
    put(disk, "/data2/u-0", t)


def folders_renamed(disk: DictDisk, t: Tree, u: Tree) -> None:
    for name, files in {"v": t, "w": u}.items():
        put(disk, f"/data2/{name}-0", files)
    for name in "tu":
        disk.remove_tree(f"/data2/{name}-0")


def exchanged(world: World, exchange: Callable[[DictDisk, Tree, Tree], None]) -> DictDisk:
    disk = world.disks[ME]
    exchange(disk, tree(disk, "/data2/t-0"), tree(disk, "/data2/u-0"))
    return disk


EXCHANGES = [ids_swapped, folders_swapped, folders_renamed]


@pytest.mark.parametrize("is_noted", [True, False], ids=["the checkpoint shows it", "metadata shows it"])
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_a_log_whose_folder_does_not_bear_its_topics_name_is_kept_aside_and_copied_anew(
    world: World, exchange: Callable[[DictDisk, Tree, Tree], None], is_noted: bool
) -> None:
    """Whether the file is the wrong one or the folder, nobody knows, so nobody knows whose the records are."""
    disk = exchanged(world, exchange)
    if not is_noted:
        disk.remove(f"/data2/{TOPIC_IDS}")
    kept = [tree(disk, f"/data2/{name}-0") for name in "tuvw"]
    world.start(ME, clean=False)
    world.run(1_000)
    for at in (AT, OTHER):
        hosted = the(world, at)
        assert isinstance(hosted.role, Follower)
        assert hosted.log.directory == f"/data2/{hosted.name}"
        assert content(world, at) == content(world, at, 1)
    assert sorted(world.nodes[ME].host.partitions.by_name) == ["t", "u"]
    aside = [tree(disk, f"/data2/{entry}") for entry in disk.list("/data2") if entry.endswith("-stray")]
    assert [segment(one) for one in aside] == [segment(one) for one in kept if one]
    assert sum("it is kept in" in text for text in world.reports) == 2


def segment(files: Tree) -> bytes:
    return files[f"/{0:020d}.log"]


@pytest.mark.parametrize("is_noted", [True, False])
def test_what_was_committed_there_is_in_the_ledger_before_it_is_copied_anew(world: World, is_noted: bool) -> None:
    disk = exchanged(world, ids_swapped)
    if not is_noted:
        disk.remove(f"/data2/{TOPIC_IDS}")
    world.start(ME, clean=False)
    assert noted(world, ME) == [(0, 6, AT_MOST), (0, 2, AT_MOST)]
    assert [lost.topic for lost in world.nodes[ME].host.ledger.all()] == ["t", "u"]


def test_a_folder_that_was_copied_under_another_name_costs_the_original_nothing(world: World) -> None:
    disk = world.disks[ME]
    t = tree(disk, "/data2/t-0")
    put(disk, "/data2/a-0", t)
    put(disk, "/data2/u-0", t)
    with pytest.raises(DiskError, match="have one topic id: it is unknown to which topic their records belong"):
        world.start(ME, clean=False)
    disk.remove_tree("/data2/a-0")
    world.start(ME, clean=False)
    assert tree(disk, "/data2/t-0")[f"/{0:020d}.log"] == segment(t)
    assert noted(world, ME) == [(0, 2, AT_MOST)]
    assert [segment(tree(disk, "/data2/u-0.1-stray"))] == [segment(t)]


def test_where_it_cannot_be_kept_aside_its_directory_is_offline() -> None:
    """Nothing else is begun under its name then."""
    jbod = Jbod(1)
    jbod.create_in(directory(1, 1))
    jbod.produce(1, 3)
    me, disk = NodeId(1), jbod.disks[NodeId(1)]
    jbod.kill(me)
    disk.remove(f"/d1/{TOPIC_IDS}")
    disk.rename("/d1/t-0", "/d1/v-0")
    replicas = Replicas(me, disk, jbod.directories(me), jbod.config, jbod.static, Random(1))
    replicas.broker_epoch = BrokerEpoch(101)
    replicas.load(jbod.now, clean=False)
    jbod.nodes[me] = replicas
    jbod.fail(1, "/d1")
    image = Image()
    image.apply_all(jbod.records)
    jbod.perform(me, replicas.apply(image, image.take_delta(), jbod.now))
    assert [log_dir.path for log_dir in replicas.host.directories.live] == ["/d0"]
    assert list(replicas.host.partitions.all()) == []
    assert jbod.produce(1, 1)().error_code == ErrorCode.KAFKA_STORAGE_ERROR
