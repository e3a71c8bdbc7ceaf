"""What is made of a cleaner's checkpoint that cannot be read."""

import pytest
from tests.unit.replica.test_cleaning import CHECKPOINT, COMPACT, FLUSHED, LOOK, configure, log_of, stored, write
from tests.unit.replica.test_directories import HOME, Jbod

from strandline.base.ids import NodeId


@pytest.mark.parametrize("clean", [False, True])
def test_a_log_loses_nothing_by_damaged_checkpoints(clean: bool) -> None:
    """It says where missing offsets are a cleaner's work. Without it they must not be taken for a lost segment, behind
    which everything would be cut."""
    world = Jbod()
    world.create_in(*HOME)
    configure(world, **COMPACT)
    write(world, 30)
    world.run(FLUSHED + LOOK)
    log = log_of(world, 2)
    assert not log.segments[0].size, "nothing is left of what it had"
    kept = stored(world, 2)
    if clean:
        world.nodes[NodeId(2)].shutdown(world.now)
    world.kill(NodeId(2))
    for name in (CHECKPOINT, "recovery-point-offset-checkpoint"):
        world.disks[NodeId(2)].write_file(f"/d0/{name}", b"no checkpoint")
    world.cut = {NodeId(1), NodeId(3)}  # who would give it back
    world.start(NodeId(2), clean=clean)
    assert stored(world, 2) == kept
    assert log_of(world, 2).has_gaps
