"""Three machines whose metadata logs lie on a real disk: the quorum and its log fit together."""

from pathlib import Path
from typing import Any

from tests.unit.quorum.network import World

from strandline.base.ids import NodeId
from strandline.base.time import Instant
from strandline.quorum.storage.metadata_log import MetadataLog
from strandline.server.storage.disk import RealDisk


class DiskLog(MetadataLog):
    """Crashes here are of processes: what was written stays."""

    log_path = "never a path"
    durable: Any = None

    @property
    def start(self) -> int:
        return self.log_start_offset

    @property
    def entries(self) -> list[Any]:
        return []

    @property
    def quorum_state(self) -> bytes | None:
        return self.read_quorum_state()

    @quorum_state.setter
    def quorum_state(self, content: bytes) -> None:
        self.disk.write_file(self.quorum_state_path, content)


def world_on(path: Path, voters: int, observers: int = 0) -> World:
    world = World(1, voters, observers)
    for node in world.machines:
        reopen(world, node, path)
    return world


def reopen(world: World, node: NodeId, path: Path) -> None:
    world.machines[node].log = DiskLog.open(RealDisk(), str(path / str(node)), Instant(0))  # type: ignore[assignment]


def values(world: World, node: int) -> list[bytes]:
    quorum = world.quorum(node)
    found = quorum.state.log.committed_batches(0, quorum.high_watermark)
    return [value for batch in found for value in batch.records]


def test_records_are_replicated_and_outlive_a_restart(tmp_path: Path) -> None:
    world = world_on(tmp_path, voters=3, observers=1)
    world.start()
    world.run_until(world.is_caught_up, 3000)
    leader = world.leader()
    assert leader is not None
    world.append(leader.me, b"a", b"b")
    world.run_until(world.is_caught_up, 1000)
    for node, machine in world.machines.items():
        machine.quorum = None
        machine.log.close()  # type: ignore[attr-defined]
        reopen(world, node, tmp_path)
    world.start()
    world.run_until(world.is_caught_up, 3000)
    assert [values(world, node) for node in world.machines] == [[b"a", b"b"]] * 4


def test_newcomer_downloads_the_snapshot_and_goes_on_from_it(tmp_path: Path) -> None:
    world = world_on(tmp_path, voters=1, observers=1)
    world.start(1)
    world.run_until(world.is_caught_up, 3000)
    log: Any = world.machines[NodeId(1)].log
    state = [b"%d" % n * 100 for n in range(30_000)]
    for record in (b"a", b"b"):
        last = world.append(1, record)
        world.run_until(world.is_caught_up, 1000)
        log.write_snapshot(last + 1, 1, state, world.now)
        world.append(1, b"behind " + record)
        world.run_until(world.is_caught_up, 1000)
    assert log.log_start_offset > 0
    world.start(2)
    world.run_until(world.is_caught_up, 3000)
    observer: Any = world.machines[NodeId(2)].log
    assert observer.latest_snapshot() == log.latest_snapshot()
    assert list(observer.read_snapshot(observer.latest_snapshot())) == state
    assert values(world, 2) == [b"behind b"]
    assert not [name for name in RealDisk().list(observer.directory) if name.endswith(".part")]
