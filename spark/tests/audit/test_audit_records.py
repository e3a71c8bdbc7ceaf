"""The audit's rules about single records: what was acknowledged, and what compacted replicas agree on."""

from typing import TYPE_CHECKING, Any

import pytest

from strandline_spark import schemas
from strandline_spark.jobs.audit.ledger import as_rows
from strandline_spark.jobs.audit.replicas import Known
from strandline_spark.jobs.audit.rows import KEYS, Row, all_of, frame, in_runs, of_several
from strandline_spark.jobs.audit.subjects.acknowledged import acknowledged_records
from strandline_spark.jobs.audit.subjects.compacted import compacted_agreement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.long

SUMS = schemas.rows(*KEYS, "offset long", "crc32 long")


def known(broker: int, partition: int, **others: Any) -> Known:
    values = {"start": 0, "high_watermark": 10, "end": 10, "cleaned_to": None, "is_stopped": True}
    values |= {"is_compacted": False, "latest": 1, "bytes": 0, "batches": 0, "records": 0}
    return Known((broker, "/d", "t", "id", partition), **{**values, **others})


def row(broker: int, partition: int, **others: Any) -> Row:
    return {"broker": broker, "directory": "/d", "topic": "t", "topic_id": "id", "partition": partition, **others}


def findings_by_rule(findings: "DataFrame") -> dict[tuple[int, str], list[tuple[int, int]]]:
    found: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for one in of_several(in_runs(findings)).orderBy("partition", "rule", "offset").collect():
        assert one["what"]
        found.setdefault((one["partition"], one["rule"]), []).append((one["offset"], one["end"]))
    return found


def test_acknowledged_records_are_sought_where_the_latest_leader_has_its_log(spark: "SparkSession") -> None:
    """Partition 0: all is there. 1: nowhere. 2: only on a follower. 3: another record is there. 4: taken by retention.
    5: in the ledger, some. 6: cleaned, perhaps. 7: two records at one offset. 8: nobody was read. 9: no checksum."""
    replicas = [known(broker, partition) for partition in range(8) for broker in (1, 2)] + [known(1, 9)]
    replicas[2 * 2] = known(1, 2, latest=2)  # leads without what broker 2 has
    replicas[2 * 4 : 2 * 5] = [known(1, 4, start=6), known(2, 4, start=6)]
    replicas[2 * 6 : 2 * 7] = [known(1, 6, cleaned_to=6), known(2, 6, cleaned_to=0)]
    stored = {0: range(10), 2: range(0), 3: range(10), 4: range(6, 10), 5: range(2), 6: range(6, 9), 9: range(2)}
    sums = [
        row(broker, partition, offset=offset, crc32=offset + (partition == 3))
        for partition, offsets in stored.items()
        for broker in (1, 2)
        for offset in offsets
    ] + [row(2, 2, offset=offset, crc32=offset) for offset in range(3)]
    acks = [("t", partition, offset, offset, None) for partition in range(7) for offset in (0, 1, 2, 8)]
    acks += [
        ("t", 6, 9, 9, None),
        ("t", 7, 4, 1, None),
        ("t", 7, 4, 2, None),
        ("t", 8, 0, None, None),
        ("t", 9, 1, None, None),
    ]
    asked = spark.createDataFrame(acks, schemas.ACKNOWLEDGED)
    losses = as_rows(spark, [("t", 5, 2, 5, 2, "cut"), ("t", 5, 4, -1, 1, "elected"), ("t", 4, 0, -1, 1, "elected")])
    found = findings_by_rule(acknowledged_records(asked, frame(spark, sums, SUMS), replicas, losses))
    assert found == {
        (1, "acknowledged-lost"): [(0, 3), (8, 9)],
        (2, "acknowledged-not-led"): [(0, 3)],
        (2, "acknowledged-lost"): [(8, 9)],
        (3, "acknowledged-lost"): [(0, 3), (8, 9)],
        (5, "acknowledged-lost-recorded"): [(2, 3), (8, 9)],
        (6, "acknowledged-lost"): [(9, 10)],
        (7, "acknowledged-lost"): [(4, 5)],
        (7, "acknowledged-twice"): [(4, 5)],
        (8, "acknowledged-lost"): [(0, 1)],
    }


def records(spark: "SparkSession", broker: int, partition: int, *held: tuple[int, str, str | None]) -> "DataFrame":
    names = dict.fromkeys(schemas.REPLICA_RECORD.names)
    rows = [
        {
            **names,
            **row(broker, partition, offset=offset, key=key.encode(), is_control=False, leader_epoch=0),
            "value": None if value is None else value.encode(),
        }
        for offset, key, value in held
    ]
    return frame(spark, rows, schemas.REPLICA_RECORD)


def test_compacted_replicas_agree_on_each_keys_last_record_whatever_cleaners_took(spark: "SparkSession") -> None:
    """Partition 0: cleaned at different times. 1: a key's last record is missing. 2: another record at one offset. 3: a
    tombstone is gone. 4: what lacks lies above a high watermark. 5: what lacks was taken by retention."""
    replicas = [known(broker, partition, is_compacted=True) for partition in range(6) for broker in (1, 2)]
    replicas[9] = known(2, 4, is_compacted=True, high_watermark=2)
    replicas[11] = known(2, 5, is_compacted=True, start=2)
    every = all_of(
        [
            records(spark, 1, 0, (0, "a", "1"), (1, "b", "1"), (2, "a", "2")),
            records(spark, 2, 0, (1, "b", "1"), (2, "a", "2")),
            records(spark, 1, 1, (0, "a", "1"), (1, "b", "1"), (2, "a", "2")),
            records(spark, 2, 1, (0, "a", "1"), (1, "b", "1")),
            records(spark, 1, 2, (0, "a", "1")),
            records(spark, 2, 2, (0, "a", "2")),
            records(spark, 1, 3, (0, "a", "1"), (1, "a", None)),
            records(spark, 2, 3),
            records(spark, 1, 4, (0, "a", "1"), (3, "a", "2")),
            records(spark, 2, 4, (0, "a", "1")),
            records(spark, 1, 5, (0, "a", "1"), (3, "b", "2")),
            records(spark, 2, 5, (3, "b", "2")),
        ]
    )
    assert findings_by_rule(compacted_agreement(every, replicas)) == {
        (1, "key-lost"): [(2, 3)],
        (2, "record-diverged"): [(0, 1)],
    }


def test_what_a_stopped_replica_still_has_of_a_key_may_be_gone_elsewhere(spark: "SparkSession") -> None:
    """Broker 3 was stopped at offset 10, and the others went on and were cleaned. Partition 0: a newer record of the
    key took its place. 1: so did a tombstone, which is gone too. 2: broker 2 lacks what 1 and 3 have; 3: broker 3 does.
    4: broker 3 had just begun to copy what another had cleaned. 5: 1 and 2 differ where 3 knows nothing."""
    replicas = [
        known(broker, partition, is_compacted=True, cleaned_to=8 if broker == 3 else 15, high_watermark=high_watermark)
        for partition in range(6)
        for broker, high_watermark in ((1, 20), (2, 20), (3, 10))
    ]
    replicas[3 * 4] = known(1, 4, is_compacted=True, cleaned_to=0, high_watermark=20)
    every = all_of(
        [
            records(spark, 1, 0, (12, "a", "2")),
            records(spark, 2, 0, (12, "a", "2")),
            records(spark, 3, 0, (5, "a", "1")),
            records(spark, 1, 1),
            records(spark, 2, 1),
            records(spark, 3, 1, (5, "a", "1")),
            records(spark, 1, 2, (3, "a", "1"), (16, "b", "1")),
            records(spark, 2, 2, (16, "b", "1")),
            records(spark, 3, 2, (3, "a", "1")),
            records(spark, 1, 3, (3, "a", "1")),
            records(spark, 2, 3, (3, "a", "1")),
            records(spark, 3, 3),
            records(spark, 1, 4, (5, "a", "1"), (12, "a", "2")),
            records(spark, 2, 4, (12, "a", "2")),
            records(spark, 3, 4),
            records(spark, 1, 5, (17, "a", "1")),
            records(spark, 2, 5, (17, "a", "2")),
            records(spark, 3, 5),
        ]
    )
    found = compacted_agreement(every, replicas)
    assert findings_by_rule(found) == {
        (2, "key-lost"): [(3, 4)],
        (3, "key-lost"): [(3, 4)],
        (5, "record-diverged"): [(17, 18)],
    }
    assert {row["partition"]: row["broker"] for row in found.collect()} == {2: 2, 3: 3, 5: None}
