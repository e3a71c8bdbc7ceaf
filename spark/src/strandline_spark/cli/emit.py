"""`strandline pipeline emit`: a table or the result of a query into a topic, each row exactly once."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from strandline.cli.connect import DEFAULT_BOOTSTRAP, Bootstrap, CommandConfig, Json, misuse
from strandline_spark.cli.options import Conf, Master, Options, kafka_options, setting, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from strandline_spark.jobs.emit.plan import Finished

Views = Annotated[Sequence[str], Parameter(name="--view", negative="", show_default=False)]
SHOWN_MAX = 20


def emit(
    *,
    topic: str,
    checkpoint: str,
    table: str | None = None,
    query: str | None = None,
    view: Views = (),
    format_: Annotated[str, Parameter(name="--format")] = "parquet",
    catalog: Annotated[Sequence[str], Parameter(negative="", show_default=False)] = (),
    key: str | None = None,
    value: str | None = None,
    lanes: int | None = None,
    verify: bool = True,
    option: Options = (),
    command_config: CommandConfig = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    master: Master = None,
    conf: Conf = (),
    json_output: Json = False,
) -> None:
    """Write a table, or the result of a query, to a topic, exactly once, whatever is killed meanwhile.

    After a crash or Ctrl-C, run the same command again: it continues where it stopped. A finished run does nothing.

    Exit status: 0 if all rows are in the topic; 1 if not, with the reason.

    Parameters
    ----------
    topic
        an existing topic
    checkpoint
        a folder for this run alone, which all of Spark's machines share: it holds the staged rows and the progress
    table
        the path of the table
    query
        a SQL query instead of a table; it can name files, such as ``parquet.`/path` ``
    view
        NAME=PATH: the query can use the table at PATH as NAME; repeatable
    format_
        the format of the tables: parquet, iceberg, delta, or another format that Spark reads (orc, json, csv, …)
    catalog
        a property of an Iceberg catalog, key=value; repeatable
    key
        a SQL expression for the key, a string or binary; default: the column key, if there are columns key and value
    value
        a SQL expression for the value; default: the column value, or else each row as JSON
    lanes
        how many files are written in parallel; 1 keeps the order of a sorted query within each partition
    verify
        at the end, read the topic once and count the rows
    """
    if (table is None) == (query is None):
        misuse("it is not clear what to emit", "name either --table or --query")
    if lanes is not None and lanes < 1:
        misuse(f"--lanes must be at least 1, not {lanes}")
    views, catalogs = dict(setting(one, "--view") for one in view), dict(setting(one, "--catalog") for one in catalog)
    options = kafka_options(bootstrap, option, command_config)
    with spark_session(master, conf, "emit") as spark:
        from strandline_spark.jobs.emit.checkpoint import Checkpoint
        from strandline_spark.jobs.emit.job import run
        from strandline_spark.jobs.emit.staged.staging import message_rows

        named = [f"table {table} ({format_})"] if table else [f"query {query}"]
        named += [f"view {name} {path} ({format_})" for name, path in sorted(views.items())]
        named += [f"{name} {text}" for name, text in (("key", key), ("value", value)) if text]
        finished = run(
            spark,
            lambda: message_rows(
                read(spark, table, query, views, lambda path: load(spark, path, format_, catalogs)),
                key=key,
                value=value,
            ),
            checkpoint=Checkpoint(checkpoint),
            options=options,
            source="\n".join(named),
            topic=topic,
            lanes=lanes,
            verify=verify,
            notify=lambda text: print(text, file=sys.stderr),
        )
    show(topic, finished, json_output)


def read(
    spark: "SparkSession",
    table: str | None,
    query: str | None,
    views: dict[str, str],
    load: "Callable[[str], DataFrame]",
) -> "DataFrame":
    for name, path in views.items():
        load(path).createOrReplaceTempView(name)
    if query is not None:
        return spark.sql(query)
    assert table is not None
    return load(table)


def load(spark: "SparkSession", path: str, form: str, catalog: dict[str, str]) -> "DataFrame":
    """A table of ours by what is committed, another as Spark reads it."""
    from strandline_spark.tables import read_table
    from strandline_spark.tables.manifest import FOLDER

    if form in ("iceberg", "delta") or (form == "parquet" and (Path(path) / FOLDER).is_dir()):
        return read_table(spark, form, path, catalog or None)
    return spark.read.format(form).load(path)


def show(topic: str, finished: "Finished", json_output: bool) -> None:
    partitions: dict[int, int] = {}
    for row in finished.written:
        partitions[row.partition] = partitions.get(row.partition, 0) + row.rows
    if json_output:
        lanes = len({row.lane for row in finished.written})
        print(json.dumps({"topic": topic, "rows": finished.rows, "lanes": lanes, "partitions": partitions}))
        return
    print(f"{finished.rows:,} rows are in topic '{topic}', each once")
    for partition, rows in sorted(partitions.items())[:SHOWN_MAX]:
        print(f"  partition {partition}: {rows:,}")
    if len(partitions) > SHOWN_MAX:
        print(f"  and {len(partitions) - SHOWN_MAX} more")
