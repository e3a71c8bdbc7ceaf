"""A search in a partition whose records cannot be read."""

import pytest
from tests.unit.client.partition import FIRST, Partition, batch, raw

from strandline.base.ids import uuid_text
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import CorruptRecords
from strandline_spark.jobs.emit.searching import Where, batches_of


def test_a_search_does_not_end_behind_what_it_cannot_read() -> None:
    """It would say that batches are not there, which would be sent again."""
    with Partition(batch(5), raw(b"rotten" * 20, 8)) as broker:
        broker.answers[2] = broker.edges
        config = ClientConfig.of({"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}"})
        with Cluster(config) as cluster, pytest.raises(CorruptRecords, match="t-0 at offset 6 "):
            list(batches_of(cluster, Where("t", uuid_text(FIRST), 0), (7,), 5, -1))
