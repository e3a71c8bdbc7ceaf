"""Checkpoints know a log by its topic's name, and a name may be used again."""

from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.log.checkpoints import parse_offsets
from strandline.metadata import records as r
from strandline.replica.hosting.rows import HIGH_WATERMARKS, RECOVERY_POINTS

AT = TopicPartition("t", 0)


@pytest.mark.parametrize("file", [HIGH_WATERMARKS, RECOVERY_POINTS])
def test_a_new_topic_does_not_inherit_the_checkpoints_of_its_namesake(world: Any, file: str) -> None:
    """Else, after a crash, records count as committed, or as whole, that are not."""

    def row() -> int:
        return parse_offsets(world.disks[1].read_file(f"/data1/{file}")).get(AT, 0)

    world.create(replicas=(1,))
    world.produce(1, 3)
    world.run(100_000)
    assert row() == 3
    world.commit(r.RemoveTopicRecord(topic_id=world.image.topic_ids["t"]))
    world.create(replicas=(1,))
    assert row() == 0
