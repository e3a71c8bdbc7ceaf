"""What the tests of compaction begin with."""

import pytest
from tests.unit.log.compaction.compacting import compacted
from tests.unit.log.logs import open_log

from strandline.log.log import Log
from strandline.sim.world.disk import SimDisk


@pytest.fixture
def disk() -> SimDisk:
    return SimDisk()


@pytest.fixture
def log(disk: SimDisk) -> Log:
    """Empty, and to be compacted."""
    return open_log(disk, compacted())
