"""A record whose time cannot be told."""

from tests.unit.pipeline.client.partition import Partition, batch, raw

from strandline.pipeline.client import ClientConfig, Cluster
from strandline.pipeline.jobs.lag.sampling import Sampler


def test_records_that_cannot_be_read_have_no_delay_and_end_no_watching() -> None:
    with Partition(batch(0), raw(b"rotten")) as broker:
        config = ClientConfig.of({"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}"})
        with Cluster(config) as cluster:
            sampler = Sampler(cluster)
            assert sampler.timestamp_at(("t", 0), 0) == 0
            assert sampler.timestamp_at(("t", 0), 1) is None
