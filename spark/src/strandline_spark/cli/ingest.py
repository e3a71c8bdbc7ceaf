"""`strandline pipeline ingest`: a topic becomes a table, exactly once, by a TOML file or by flags."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from strandline.cli.connect import CommandConfig, Json, fail, properties_in
from strandline.cli.show import Column, Fitted, show_rows
from strandline_spark.cli.options import Conf, Master, require_spark, setting, spark_session

if TYPE_CHECKING:
    from strandline_spark.jobs.ingest.declaration import Pipeline
    from strandline_spark.jobs.ingest.running import IngestResult

FINDINGS, INCOMPLETE = 2, 3
Repeatable = Annotated[Sequence[str], Parameter(negative="", show_default=False)]
Servers = Annotated[str | None, Parameter(name=("--bootstrap-server", "--bootstrap"), env_var="STRANDLINE_BOOTSTRAP")]


def source_options(entries: Sequence[str], command_config: Path | None) -> dict[str, str]:
    """--option goes before the file."""
    of_file = {} if command_config is None else properties_in(command_config)
    return {
        **{f"kafka.{key}": value for key, value in of_file.items()},
        **dict(setting(e, "--option") for e in entries),
    }


def ingest(
    file: str | None = None,
    *,
    topic: str | None = None,
    bootstrap: Servers = None,
    table: str | None = None,
    format: Literal["parquet", "iceberg", "delta"] | None = None,  # noqa: A002  # the name in the file
    value: Literal["json", "text", "binary"] | None = None,
    columns: str | None = None,
    schema: str | None = None,
    sql: str | None = None,
    partition_by: Repeatable = (),
    quarantine: str | None = None,
    checkpoint: str | None = None,
    trigger: str | None = None,
    starting: str | None = None,
    max_offsets_per_trigger: int | None = None,
    compact_every: int | None = None,
    option: Repeatable = (),
    command_config: CommandConfig = None,
    catalog: Repeatable = (),
    strict: Annotated[bool, Parameter(negative="")] = False,
    master: Master = None,
    conf: Conf = (),
    json_output: Json = False,
) -> None:
    """Write the records of a topic into a table, exactly once, also if this command is killed and started again.

    Exit status: 0 if everything was written; 1 on an error (committed batches stay in the table); 2 with --strict, if
    rows were quarantined or did not meet an expectation; 3 if a signal stopped it before everything was read.

    Parameters
    ----------
    file
        a TOML file that declares the pipeline; flags override it
    topic
        the topic; separate several with commas
    bootstrap
        host:port of one or more brokers
    table
        the folder of the table, or the name of an Iceberg table in a catalog
    format
        parquet (the default), iceberg or delta
    value
        the format of the values: json, text or binary (the default)
    columns
        the columns of JSON values, such as `id long not null, tags array<string>`
    schema
        for JSON values: a file with a JSON Schema, or a Spark schema; or infer, to derive it from the first records
    sql
        a query on `source`; its rows are written to the table
    partition_by
        a column, or name = SQL: `day = date(timestamp)`; repeatable
    quarantine
        a folder for records that do not fit the declaration; default: the table's name with _quarantine
    checkpoint
        a folder for the progress of this pipeline; default: inside the table's folder
    trigger
        available-now (the default): read all records and end; or an interval between batches, such as 10s
    starting
        where the first run starts: earliest (the default), latest, or JSON in the form of startingOffsets
    max_offsets_per_trigger
        the maximum number of records in a batch
    compact_every
        compact small files after this number of batches
    option
        an option of the source, key=value, such as kafka.security.protocol=SSL; repeatable
    catalog
        a property of an Iceberg catalog, key=value; repeatable
    strict
        exit with status 2 if rows were quarantined or did not meet an expectation
    """
    require_spark()
    changes: dict[str, dict[str, Any]] = {
        "source": given(
            topic=topic,
            bootstrap=bootstrap,
            starting=starting,
            max_offsets_per_trigger=max_offsets_per_trigger,
            options=source_options(option, command_config) or None,
        ),
        "value": given(
            format=value or ("json" if columns or schema else None), columns=given_columns(columns), schema=schema
        ),
        "transform": given(sql=sql),
        "sink": given(
            table=table,
            format=format,
            partition_by=list(partition_by) or None,
            quarantine=quarantine,
            catalog=dict(setting(entry, "--catalog") for entry in catalog) or None,
            compaction=None if compact_every is None else {"every": compact_every},
        ),
        "run": given(checkpoint=checkpoint, trigger=trigger),
    }
    run(declared(file, changes), master, conf, json_output, strict)


def given(**flags: Any) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value is not None}


def given_columns(text: str | None) -> dict[str, Any] | None:
    """The flag's columns as the file has them."""
    from strandline_spark.errors import StrandlineError
    from strandline_spark.jobs.ingest.columns import columns_of_text

    if text is None:
        return None
    try:
        return {each.name: {"type": each.type, "required": each.required} for each in columns_of_text(text)}
    except StrandlineError as error:
        fail(f"--columns: {error.problem}", error.advice)


def declared(file: str | None, changes: dict[str, dict[str, Any]]) -> "Pipeline":
    """The file with the flags' changes. Checks everything that can be checked before Spark starts."""
    from strandline_spark.errors import StrandlineError
    from strandline_spark.jobs.ingest.declaration import pipeline, read_file

    changes = {name: section for name, section in changes.items() if section}
    if file is None and not ("topic" in changes.get("source", {}) and "table" in changes.get("sink", {})):
        fail("nothing to ingest", "name a TOML file, or --topic and --table")
    try:
        return pipeline(changes, where="flags") if file is None else read_file(file, changes)
    except StrandlineError as error:
        fail(error.problem, error.advice)


def run(pipeline: "Pipeline", master: str | None, conf: Sequence[str], json_output: bool, strict: bool) -> None:
    with spark_session(master, conf, "ingest") as spark:
        from strandline_spark.jobs.ingest.job import ingesting
        from strandline_spark.jobs.ingest.running import stopping_on_signals
        from strandline_spark.progress import progress

        running = ingesting(pipeline, spark=spark)
        with stopping_on_signals(running), progress(spark, f"ingest {pipeline.declared.name}"):
            result = running.wait()
    show(result, pipeline, json_output)
    if result.was_stopped and pipeline.trigger_ms is None:
        raise SystemExit(INCOMPLETE)
    if strict and (result.run.quarantined or any(result.run.failed.values())):
        raise SystemExit(FINDINGS)


def show(result: "IngestResult", pipeline: "Pipeline", json_output: bool) -> None:
    shown = result.as_json() | {"path": pipeline.declared.sink.table, "format": pipeline.declared.sink.format}
    if json_output:
        print(json.dumps(shown))
        return
    if shown["table"]["partitions"]:
        show_rows(shown["table"]["partitions"], False, table_of, line_of)
    for name, count in result.run.failed.items():
        if count:
            print(f"{count} rows did not meet the expectation {name!r}")
    print(sentence(result, pipeline))


def table_of(rows: list[dict[str, Any]]) -> Fitted:
    shown = Fitted(*(Column(name) for name in rows[0]))
    for row in rows:
        shown.add_row(*("" if cell is None else str(cell) for cell in row.values()))
    return shown


def line_of(row: dict[str, Any]) -> str:
    return " ".join(f"{name}={cell}" for name, cell in row.items() if cell is not None)


DENSE = {
    True: "every offset is accounted for exactly once",
    False: "offsets are missing or duplicated (compaction and transactions leave gaps)",
    None: "SQL left records out, so gaps do not show a loss",
}


def sentence(result: "IngestResult", pipeline: "Pipeline") -> str:
    run, table = result.run, result.table
    also = [(run.quarantined, "quarantined"), (run.dropped, "dropped"), (run.filtered, "left out by SQL")]
    parts = [f"{run.rows} rows written", *(f"{count} {word}" for count, word in also if count > 0)]
    dense = DENSE[table.is_dense]
    return (
        f"{run.rows_in} records read, {', '.join(parts)} in {result.batches} batches and {result.seconds:.1f} s;"
        f" {pipeline.declared.sink.table} has {table.rows} rows: {dense}"
    )
