"""What the active controller has decided since its process started, for metrics.

Elections count on the node that wrote them, so that the sum over all nodes is that of the cluster.
"""

from collections.abc import Iterable
from typing import Any

from strandline.base.ids import TopicIdPartition
from strandline.controller.reports import is_unclean
from strandline.metadata.image import Image
from strandline.metadata.records import PartitionChangeRecord


class Counts:
    def __init__(self) -> None:
        self.elections = 0
        self.unclean_elections = 0
        self.eligible_elections = 0  # of a replica that was not in the ISR, and eligible (KIP-966)
        self.timed_out_heartbeats = 0

    def written(self, records: Iterable[Any], before: Image) -> None:
        """`before`: the image to which the records were not yet applied."""
        for record in records:
            if isinstance(record, PartitionChangeRecord) and record.leader >= 0:
                old = before.partition(TopicIdPartition(record.topic_id, record.partition_id))
                assert old is not None
                self.elections += 1
                if is_unclean(record):
                    self.unclean_elections += 1
                elif record.leader in old.elr:
                    self.eligible_elections += 1
                assert self.unclean_elections + self.eligible_elections <= self.elections
