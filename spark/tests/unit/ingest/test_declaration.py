"""A pipeline's TOML file: what it may say, and how it is told what is wrong."""

from pathlib import Path

import pytest
from tests.rows import each

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.ingest.declaration import (
    Expectation,
    Partition,
    Pipeline,
    pipeline,
    read_file,
    trigger_ms,
)

WHOLE = """
name = "orders"

[source]
topic = "orders"
bootstrap = "127.0.0.1:9092"
starting = "latest"
max_offsets_per_trigger = 1000
headers = true
options = { "kafka.isolation.level" = "read_committed", failOnDataLoss = false }

[value]
format = "json"
unknown = "quarantine"
[value.columns]
id = "long not null"
city = { type = "string", path = "address.city" }

[transform]
sql_file = "orders.sql"

[[expectations]]
name = "paid"
check = "amount > 0"
action = "drop"

[[expectations]]
name = "somewhere"
check = "city IS NOT NULL"

[sink]
table = "/data/orders"
format = "delta"
partition_by = ["region", "day = date(timestamp)"]
compaction = { every = 20, target_mb = 64 }

[run]
trigger = "10s"
"""
SMALL = '[source]\ntopic = "t"\nbootstrap = "b:1"\n[sink]\ntable = "/data/t"\n'


def read(folder: Path, text: str) -> Pipeline:
    (folder / "pipeline.toml").write_text(text)
    return read_file(str(folder / "pipeline.toml"))


def test_a_whole_file(tmp_path: Path) -> None:
    (tmp_path / "orders.sql").write_text("SELECT * FROM source")
    found = read(tmp_path, WHOLE)
    assert found.sql == "SELECT * FROM source"
    assert [each.name for each in found.columns] == ["id", "city"]
    assert found.partitions == (Partition("region"), Partition("day", "date(timestamp)"))
    assert found.expectations[1] == Expectation("somewhere", "city IS NOT NULL", "quarantine")
    assert found.trigger_ms == 10_000
    assert found.checkpoint == "/data/orders/_strandline/checkpoint"
    assert found.quarantine == "/data/orders_quarantine"
    assert found.declared.source.reader_options() == {
        "startingOffsets": "latest",
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "subscribe": "orders",
        "maxOffsetsPerTrigger": "1000",
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": "false",
    }


def test_defaults(tmp_path: Path) -> None:
    found = read(tmp_path, SMALL)
    assert found.declared.source.reader_options()["startingOffsets"] == "earliest"
    assert found.declared.sink.format == "parquet"
    assert found.trigger_ms is None
    assert not found.may_quarantine


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(SMALL)
    found = read_file(str(tmp_path / "p.toml"), {"run": {"trigger": "5m"}, "sink": {"table": "/other"}})
    assert (found.trigger_ms, found.declared.sink.table, found.declared.source.topic) == (300_000, "/other", "t")


def test_a_flag_takes_the_place_of_what_says_the_same_and_leaves_the_rest(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(
        """
        [source]
        pattern = "t.*"
        bootstrap = "b:1"
        options = { "kafka.security.protocol" = "SSL", "kafka.client.id" = "a" }
        [value]
        format = "json"
        schema = "no.json"
        [transform]
        sql_file = "no.sql"
        [sink]
        table = "/t"
        compaction = { every = 3, target_mb = 7 }
        """
    )
    flags = {
        "source": {"topic": "one", "options": {"kafka.client.id": "b"}},
        "value": {"columns": {"id": "long"}},
        "transform": {"sql": "SELECT * FROM source"},
        "sink": {"compaction": {"every": 5}},
    }
    found = read_file(str(tmp_path / "p.toml"), flags)
    assert found.declared.source.options == {"kafka.security.protocol": "SSL", "kafka.client.id": "b"}
    assert (found.declared.source.topic, found.declared.source.pattern) == ("one", None)
    assert [column.name for column in found.columns] == ["id"]
    assert (found.declared.sink.compaction.every, found.declared.sink.compaction.target_mb) == (5, 7)


@each(
    ("change", "why"),
    [
        (("topic =", "tpoic ="), r"unknown field `tpoic` - at `\$\.source`"),
        (('topic = "t"', ""), "exactly one of topic, pattern"),
        (('topic = "t"', 'topic = "t"\npattern = "t.*"'), "exactly one of topic, pattern"),
        (('bootstrap = "b:1"', ""), "does not name the cluster"),
        (('bootstrap = "b:1"', 'bootstrap = "b:1"\nmax_offsets_per_trigger = 0'), "at least 1"),
        (("[sink]", '[value]\nformat = "json"\n[sink]'), "needs either columns or a schema"),
        (("[sink]", '[value]\nformat = "text"\ncolumns = { a = "int" }\n[sink]'), "of format text cannot have columns"),
        (("[sink]", '[value]\nformat = "json"\nschema = "no.json"\n[sink]'), "cannot read .*no.json: No such file"),
        (("[sink]", '[transform]\nsql = "a"\nsql_file = "b"\n[sink]'), "both sql and sql_file"),
        (("[sink]", '[run]\ntrigger = "often"\n[sink]'), "'often' is neither available-now nor a time"),
        (("[sink]", '[sink]\nformat = "orc"'), r"Invalid enum value 'orc' - at `\$\.sink\.format`"),
        (("[sink]", "[sink]\ncompaction = { every = -1 }"), "every ≥ 0"),
        (("[sink]", '[sink]\ncatalog = { type = "rest" }'), "of format parquet cannot have a catalog"),
        (("[sink]", '[sink]\nquarantine = "/data/x/../t/"'), "quarantine and table are the same folder"),
        (("[sink]", "[sink"), "is not valid TOML"),
        (
            ("[sink]", '[[expectations]]\nname = "a"\ncheck = "b"\n[[expectations]]\nname = "a"\ncheck = "c"\n[sink]'),
            "two expectations have the name 'a'",
        ),
        (
            ("[sink]", '[[expectations]]\nname = "a"\ncheck = "b"\naction = "explode"\n[sink]'),
            "Invalid enum value 'explode'",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, change: tuple[str, str], why: str) -> None:
    with pytest.raises(StrandlineError, match=why) as raised:
        read(tmp_path, SMALL.replace(*change))
    assert "pipeline.toml" in raised.value.problem


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StrandlineError, match=r"cannot read .*: No such file"):
        read_file(str(tmp_path / "none.toml"))


def test_a_table_in_a_catalog_must_say_where_its_checkpoint_is() -> None:
    declared = {
        "source": {"topic": "t", "bootstrap": "b:1"},
        "sink": {"table": "shop.orders", "format": "iceberg", "catalog": {"type": "rest"}},
    }
    with pytest.raises(StrandlineError, match="is not a local folder"):
        _ = pipeline(declared).checkpoint
    declared["run"] = {"checkpoint": "/c"}
    assert pipeline(declared).checkpoint == "/c"


def test_triggers() -> None:
    assert [trigger_ms(text) for text in ("available-now", "10s", "500ms", "1.5m", "2h")] == [
        None,
        10_000,
        500,
        90_000,
        7_200_000,
    ]
