"""A record whose time cannot be told."""

from tests.unit.client.partition import Partition, batch, raw

from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline_spark.jobs.lag.delays import Delays


def test_records_that_cannot_be_read_have_no_delay_and_end_no_watching() -> None:
    with Partition(batch(0), raw(b"rotten")) as broker:
        config = ClientConfig.of({"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}"})
        with Cluster(config) as cluster:
            delays = Delays(cluster, 0)
            assert delays.of(("t", 0), 0, 9, now_ms=7) == 7
            assert delays.of(("t", 0), 1, 9, now_ms=7) is None
