"""A pipeline, declared: where records come from, what they become, what is expected of them, where they go.

The same in a TOML file, from the command line's flags, and in a notebook. Everything that can be checked without Spark
and without the cluster is checked here, and each complaint says where it stands.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import field

from strandline.base.value import Value
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.ingest.columns import Column, columns_of, columns_of_file
from strandline_spark.tables import Format
from strandline_spark.tables.files import local_path

Action = Literal["quarantine", "drop", "warn", "fail"]
EXPECTATIONS_MAX = 62  # a bit of a number for each
TRIGGER = re.compile(r"^(?P<count>\d+(\.\d+)?)\s*(?P<unit>ms|s|m|h)$")
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
INFER = "infer"
AVAILABLE_NOW = "available-now"
MERGED = ("options", "catalog", "compaction")
INSTEAD = {"topic": ("pattern",), "sql": ("sql_file",), "columns": ("schema",), "schema": ("columns",)}
COMPUTED = re.compile(r"^\s*(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<sql>.+?)\s*$", re.DOTALL)


class Strict(Value, frozen=True, forbid_unknown_fields=True):
    """A table of a TOML file: a name that it has not is an error."""


class Source(Strict, frozen=True, forbid_unknown_fields=True):
    topic: str | None = None  # several with commas
    pattern: str | None = None
    bootstrap: str | None = None
    starting: str = "earliest"  # of the first run: earliest, latest, or JSON as startingOffsets has it
    max_offsets_per_trigger: int | None = None
    headers: bool = False
    options: dict[str, str | int | bool | float] = field(default_factory=dict)  # of the source, as they are

    def reader_options(self) -> dict[str, str]:
        """What `spark.readStream.format("strandline").options(…)` gets."""
        found = {"startingOffsets": self.starting}
        if self.bootstrap is not None:
            found["kafka.bootstrap.servers"] = self.bootstrap
        if self.topic is not None:
            found["subscribe"] = self.topic
        if self.pattern is not None:
            found["subscribePattern"] = self.pattern
        if self.max_offsets_per_trigger is not None:
            found["maxOffsetsPerTrigger"] = str(self.max_offsets_per_trigger)
        if self.headers:
            found["includeHeaders"] = "true"
        plain = {
            key: str(given).lower() if isinstance(given, bool) else str(given) for key, given in self.options.items()
        }
        return {**found, **plain}


class ValueOf(Strict, frozen=True, forbid_unknown_fields=True):
    """What a record's value is. `nulls`: what becomes of a record without a value (a tombstone)."""

    format: Literal["json", "text", "binary"] = "binary"
    columns: dict[str, str | dict[str, Any]] = field(default_factory=dict)
    schema: str | None = None  # a file: JSON Schema, or Spark's JSON; or "infer": from the topic's first records
    unknown: Literal["ignore", "quarantine"] = "ignore"  # fields that are not declared
    nulls: Literal["quarantine", "keep"] = "quarantine"


class KeyOf(Strict, frozen=True, forbid_unknown_fields=True):
    format: Literal["binary", "text", "none"] = "binary"


class Transform(Strict, frozen=True, forbid_unknown_fields=True):
    sql: str | None = None
    sql_file: str | None = None


class Expectation(Strict, frozen=True, forbid_unknown_fields=True):
    """`check` is SQL that must be true: null is not."""

    name: str
    check: str
    action: Action = "quarantine"


class Compaction(Strict, frozen=True, forbid_unknown_fields=True):
    every: int = 0  # batches; 0: never
    target_mb: int = 128
    files_min: int = 2  # fewer small files of a partition than that are left alone


class SinkOf(Strict, frozen=True, forbid_unknown_fields=True):
    table: str
    format: Format = "parquet"
    partition_by: list[str] = field(default_factory=list)  # a column, or name = SQL
    quarantine: str | None = None
    compaction: Compaction = Compaction()
    catalog: dict[str, str] | None = None


class Run(Strict, frozen=True, forbid_unknown_fields=True):
    trigger: str = AVAILABLE_NOW
    checkpoint: str | None = None


class Declaration(Strict, frozen=True, forbid_unknown_fields=True):
    """The file as it is written."""

    source: Source
    sink: SinkOf
    name: str = "ingest"
    value: ValueOf = ValueOf()
    key: KeyOf = KeyOf()
    transform: Transform = Transform()
    expectations: list[Expectation] = field(default_factory=list)
    run: Run = Run()


class Partition(Value, frozen=True):
    """A column that the table is partitioned by, and the SQL that makes it where the rows do not have it."""

    name: str
    sql: str | None = None


class Pipeline(Value, frozen=True):
    """A declaration with everything read and checked."""

    declared: Declaration
    columns: tuple[Column, ...]
    sql: str | None
    partitions: tuple[Partition, ...]
    trigger_ms: int | None  # None: all that is there now

    @property
    def expectations(self) -> list[Expectation]:
        return self.declared.expectations

    @property
    def partition_by(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.partitions)

    @property
    def infers(self) -> bool:
        """Are the columns still to be found, from the topic's records?"""
        return self.declared.value.schema == INFER and not self.columns

    @property
    def may_quarantine(self) -> bool:
        value = self.declared.value
        is_read = value.format != "binary" or self.declared.key.format == "text"
        return is_read or any(each.action == "quarantine" for each in self.expectations)

    @property
    def quarantine(self) -> str:
        """Where the records go that the table does not take."""
        return self.declared.sink.quarantine or f"{self.folder()}_quarantine"

    @property
    def checkpoint(self) -> str:
        return self.declared.run.checkpoint or os.path.join(self.folder(), "_strandline", "checkpoint")

    def folder(self) -> str:
        table = self.declared.sink.table.rstrip("/")
        if self.declared.sink.catalog is not None or local_path(table) is None:
            raise StrandlineError(
                f"table {table} is not a local folder, so checkpoint and quarantine need folders of their own",
                'set [run] checkpoint = "…" and [sink] quarantine = "…"',
            )
        return table


def read_file(path: str, changes: Mapping[str, Mapping[str, Any]] | None = None) -> Pipeline:
    """A pipeline from a TOML file. `changes` win over it: `{"run": {"trigger": "10s"}}`."""
    try:
        with open(path, "rb") as file:
            declared = tomllib.load(file)
    except OSError as error:
        raise StrandlineError(f"cannot read {path}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise StrandlineError(f"{path} is not valid TOML: {error}") from None
    for section, values in (changes or {}).items():
        place = declared.setdefault(section, {})
        if isinstance(place, dict):
            change(place, values)
    return pipeline(declared, where=path, folder=os.path.dirname(os.path.abspath(path)))


def change(place: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Let some names of a TOML file's table have other values: those that say the same otherwise are gone, and what a
    table of names has besides (options, a catalog, compaction) stays."""
    for name, value in values.items():
        for rival in INSTEAD.get(name, ()):
            place.pop(rival, None)
        is_added = name in MERGED and isinstance(place.get(name), dict)
        place[name] = {**place[name], **value} if is_added else value


def pipeline(declared: Mapping[str, Any], *, where: str = "the declaration", folder: str = ".") -> Pipeline:
    """A pipeline from the tables of its TOML file. Other files that it names are relative to `folder`."""
    try:
        found = msgspec.convert(dict(declared), Declaration)
    except msgspec.ValidationError as error:
        raise StrandlineError(f"{where}: {error}", "docs/ingest.md lists all names") from None
    try:
        return checked(found, folder)
    except StrandlineError as error:
        raise StrandlineError(f"{where}: {error.problem}", error.advice) from None


def checked(declared: Declaration, folder: str) -> Pipeline:
    check_source(declared.source)
    check_expectations(declared.expectations)
    columns = read_columns(declared.value, folder)
    sql = read_sql(declared.transform, folder)
    partitions = tuple(partition(text) for text in declared.sink.partition_by)
    compaction = declared.sink.compaction
    if compaction.every < 0 or compaction.target_mb < 1 or compaction.files_min < 2:
        raise StrandlineError("[sink.compaction] needs every ≥ 0, target_mb ≥ 1 and files_min ≥ 2")
    if declared.sink.quarantine is not None and same_place(declared.sink.quarantine, declared.sink.table):
        raise StrandlineError(
            "[sink] quarantine and table are the same folder", "name another, or leave quarantine out"
        )
    if declared.sink.catalog is not None and declared.sink.format != "iceberg":
        raise StrandlineError(f"[sink] a table of format {declared.sink.format} cannot have a catalog", "drop catalog")
    return Pipeline(declared, columns, sql, partitions, trigger_ms(declared.run.trigger))


def same_place(one: str, other: str) -> bool:
    return (local_path(one) or one).rstrip("/") == (local_path(other) or other).rstrip("/")


def check_source(source: Source) -> None:
    ways = ("subscribe", "subscribepattern", "assign")
    given = [source.topic, source.pattern, *(key for key in source.options if key.lower() in ways)]
    if sum(each is not None for each in given) != 1:
        raise StrandlineError(
            "[source] needs exactly one of topic, pattern, options.subscribe, options.subscribePattern, options.assign"
        )
    if source.bootstrap is None and not any(key.lower() == "kafka.bootstrap.servers" for key in source.options):
        raise StrandlineError("[source] does not name the cluster", 'set bootstrap = "host:9092"')
    if source.max_offsets_per_trigger is not None and source.max_offsets_per_trigger < 1:
        raise StrandlineError("[source] max_offsets_per_trigger must be at least 1")


def check_expectations(expectations: list[Expectation]) -> None:
    names = [each.name for each in expectations]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise StrandlineError(f"two expectations have the name {twice[0]!r}")
    if len(names) > EXPECTATIONS_MAX:
        raise StrandlineError(f"{len(names)} expectations are too many: at most {EXPECTATIONS_MAX}")


def read_columns(value: ValueOf, folder: str) -> tuple[Column, ...]:
    if value.format != "json":
        if value.columns or value.schema is not None:
            raise StrandlineError(f"[value] of format {value.format} cannot have columns", 'set format = "json"')
        return ()
    if bool(value.columns) == (value.schema is not None):
        raise StrandlineError(
            "[value] of format json needs either columns or a schema",
            'for example [value.columns] id = "long not null"',
        )
    if value.schema is None:
        return columns_of(value.columns)
    if value.schema == INFER:
        return ()
    path = os.path.join(folder, value.schema)
    return columns_of_file(read_text(path, "[value] schema"), path)


def read_sql(transform: Transform, folder: str) -> str | None:
    if transform.sql is not None and transform.sql_file is not None:
        raise StrandlineError("[transform] has both sql and sql_file")
    if transform.sql_file is not None:
        return read_text(os.path.join(folder, transform.sql_file), "[transform] sql_file")
    return transform.sql


def read_text(path: str, what: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise StrandlineError(f"{what}: cannot read {path}: {error.strerror}") from None


def partition(text: str) -> Partition:
    """`region`, or `day = date(timestamp)`."""
    found = COMPUTED.match(text)
    return Partition(text.strip()) if found is None else Partition(found["name"], found["sql"])


def trigger_ms(text: str) -> int | None:
    if text == AVAILABLE_NOW:
        return None
    found = TRIGGER.match(text)
    if found is None:
        raise StrandlineError(f"trigger {text!r} is neither {AVAILABLE_NOW} nor a time", 'write "10s", "500ms" or "5m"')
    return int(float(found["count"]) * UNITS_MS[found["unit"]])
