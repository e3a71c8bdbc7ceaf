"""Answers that no leader of ours gives."""

import pytest
from tests.unit.replica.conftest import AT, World

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.replica.hosting.follower import Follower, Served


@pytest.mark.parametrize("high_watermark", [-1, 0, 1 << 61])
@pytest.mark.parametrize("gaps_end", [1, 5, 1 << 61])
def test_gaps_may_be_said_to_end_anywhere(world: World, high_watermark: int, gaps_end: int) -> None:
    world.create()
    world.cut = {NodeId(1)}
    hosted = world.nodes[NodeId(2)].host.partitions.find(AT)
    assert hosted is not None
    follower = hosted.role
    assert type(follower) is Follower
    follower.served(follower.position(), Served(ErrorCode.NONE, high_watermark, 0, gaps_end=gaps_end), world.now)
    assert follower.high_watermark == 0
