"""A transition: one event, what the controller wrote because of it, and the states before and after."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from strandline.metadata.image import Image, Partition
from strandline.metadata.records import PartitionChangeRecord
from strandline.sim.model.events import Event
from strandline.sim.model.setup import Setup
from strandline.sim.model.state import AT, State


class Step(NamedTuple):
    setup: Setup
    event: Event
    old: State
    new: State
    records: Sequence[Any]
    image: Image  # after
    is_changed: bool  # was the partition written at all?

    @property
    def partition(self) -> Partition:
        return self.image.topics[AT.topic_id].partitions[AT.partition]

    @property
    def changes(self) -> list[PartitionChangeRecord]:
        return [record for record in self.records if type(record) is PartitionChangeRecord]
