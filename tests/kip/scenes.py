"""What the tests of the protocol's texts look at: logs, their epochs, and power that fails."""

from tests.unit.replica.conftest import World

from strandline.base.ids import NodeId
from strandline.log.checkpoints import parse_epochs
from strandline.log.log import Log
from strandline.replica.leader import Leader
from strandline.wire.batch import Codec, batches, build

SEGMENT = "00000000000000000000.log"


def log_of(world: World, node: int) -> Log:
    hosted = world.nodes[NodeId(node)].host.named("t", 0)
    assert hosted is not None
    return hosted.log


def leading(world: World, node: int) -> Leader:
    hosted = world.nodes[NodeId(node)].host.named("t", 0)
    assert hosted is not None and type(hosted.role) is Leader
    return hosted.role


def content(world: World, node: int) -> list[tuple[int, int, int]]:
    """Base offset, leader epoch and checksum of every batch."""
    log = log_of(world, node)
    return [(h.base_offset, h.partition_leader_epoch, h.crc) for h in log.headers(log.log_start_offset)]


def epochs(world: World, node: int) -> list[tuple[int, int]]:
    """Epoch and start offset, as the broker knows them."""
    return [tuple(entry) for entry in log_of(world, node).epochs.entries]


def epochs_on_disk(world: World, node: int) -> list[tuple[int, int]]:
    found = world.disks[NodeId(node)].read_file(f"/data{node}/t-0/leader-epoch-checkpoint")
    assert found is not None
    return [tuple(entry) for entry in parse_epochs(found)]


def lose_power(world: World, node: int, keep: int) -> None:
    """The process is gone, and of its log all batches from offset `keep` on."""
    world.kill(NodeId(node))
    segment = world.disks[NodeId(node)].files[f"/data{node}/t-0/{SEGMENT}"]
    kept = [header for header in batches(bytes(segment.content)) if header.base_offset < keep]
    segment.truncate(kept[-1].end if kept else 0)


def restart(world: World, node: int) -> None:
    """As after a power loss: the log is checked."""
    world.start(NodeId(node), clean=False)


def a_compressed_batch(values: int) -> bytes:
    return build([(0, None, b"value %d" % n, ()) for n in range(values)], codec=Codec.LZ4)


def distinct(text: bytes) -> bytes:
    return build([(0, None, text, ())])
