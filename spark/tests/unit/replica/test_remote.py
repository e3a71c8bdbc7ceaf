"""A replica over the wire whose broker sends what is no batch."""

import pytest
from tests.unit.client.partition import Partition, batch, raw

from strandline.wire.messages.records.fetch import PartitionData
from strandline_spark.replica import DamagedLog
from strandline_spark.replica.options import BOOTSTRAP
from strandline_spark.replica.source import ReplicaReader, ReplicaSource

ROTTEN = raw(b"\x00" * 100, 2)
SOUND = batch(0, high_watermark=2)


def reader(broker: Partition, **options: str) -> ReplicaReader:
    source = ReplicaSource({BOOTSTRAP: f"127.0.0.1:{broker.port}", "subscribe": "t", "minPartitions": "1", **options})
    return source.reader(source.schema())


@pytest.mark.parametrize(("planned", "read"), [(SOUND, (SOUND, ROTTEN)), (ROTTEN, (ROTTEN,))])
def test_bytes_that_are_no_batch_have_a_row_wherever_they_are(
    planned: PartitionData, read: tuple[PartitionData, ...]
) -> None:
    """At the start of the log they are met when the read is planned, too."""
    with Partition(planned, planned, *read) as broker:  # both replicas are planned with, one is read
        reading = reader(broker)
        split = reading.partitions()[0]
        *sound, last = [row for part in reading.read(split) for row in part.to_pylist()]
        assert [last[name] for name in ("fault", "size", "position", "broker")] == ["corrupt", 100, None, 1]
        assert len(sound) == len(read) - 1
        assert last["base_offset"] == len(sound)  # so that it has its place among the others


def test_records_of_which_none_can_be_read_are_refused_with_their_offset() -> None:
    with Partition(SOUND, SOUND, SOUND, ROTTEN) as broker:
        reading = reader(broker, level="record")
        with pytest.raises(DamagedLog, match=r"t-0 on broker 1: no batch begins at offset 1 \(100 bytes\)"):
            list(reading.read(reading.partitions()[0]))
