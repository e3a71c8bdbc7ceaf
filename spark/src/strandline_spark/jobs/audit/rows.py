"""Columns that all rules share, and how a finding is written.

A rule's `case` is SQL: a struct where it found something, null elsewhere; `found` makes rows of them. So one pass over
rows serves many rules, and a sentence is put together only where there is something to say.
"""

from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from strandline_spark import schemas
from strandline_spark.schemas import FINDING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
Key = tuple[int, str, str, str, int]  # REPLICA

PARTITION = ("topic", "topic_id", "partition")
REPLICA = ("broker", "directory", *PARTITION)
ERROR, WARNING = "error", "warning"
CONTROL = 0x20  # in a batch's attributes
KEYS = schemas.REPLICA  # with their types
ALIKE = ("rule", "severity", "topic", "partition", "broker")


def normal(rows: "DataFrame") -> "DataFrame":
    """Keys without nulls, so that they join."""
    keys = {"broker": "-1", "directory": "''", "topic_id": "''"}
    return rows.selectExpr(
        *(f"coalesce({name}, {keys[name]}) as {name}" if name in keys else name for name in rows.columns)
    )


def key_of(row: Row) -> Key:
    """Of a plain row, the same."""
    broker = -1 if row["broker"] is None else row["broker"]
    return (broker, row["directory"] or "", row["topic"], row["topic_id"] or "", row["partition"])


def frame(spark: "SparkSession", rows: "Iterable[Mapping[str, Any]]", schema: StructType) -> "DataFrame":
    """Few plain rows as a DataFrame that needs no task."""
    names = schema.names
    chosen = [{name: row[name] for name in names} for row in rows]
    table = pa.Table.from_pylist(chosen, schema=to_arrow_schema(schema, timezone="UTC"))
    return spark.createDataFrame(table, schema)


def case(
    condition: str, rule: str, what: str, *, offset: str, end: str, severity: str = f"'{ERROR}'", broker: str = "broker"
) -> str:
    """All but `rule` is SQL. `what`: a sentence on the first offset; `end`: exclusive; `broker`: null if several."""
    shown = {
        "rule": f"'{rule}'",
        "severity": severity,
        "topic": "topic",
        "partition": "partition",
        "broker": broker,
        "offset": offset,
        "end": end,
        "what": what,
    }
    fields = ", ".join(
        f"'{field.name}', cast({shown[field.name]} as {field.dataType.simpleString()})" for field in FINDING.fields
    )
    return f"if({condition}, named_struct({fields}), null)"


def said(text: str, *columns: str) -> str:
    """SQL of a sentence with columns in it."""
    quoted = text.replace("'", "\\'")
    return f"format_string('{quoted}', {', '.join(columns)})"


def found(rows: "DataFrame", *cases: str) -> "DataFrame":
    """FINDING rows."""
    return rows.selectExpr(f"inline(array_compact(array({', '.join(cases)})))")


def plain(
    rule: str, what: str, place: Key, offset: int, end: int, *, is_several: bool = False, severity: str = ERROR
) -> Row:
    """A finding that needs no Spark."""
    broker, _, topic, _, partition = place
    return {
        "rule": rule,
        "severity": severity,
        "topic": topic,
        "partition": partition,
        "broker": None if is_several else broker,
        "offset": offset,
        "end": end,
        "what": what,
    }


def all_of(parts: "Sequence[DataFrame]") -> "DataFrame":
    return reduce(lambda one, other: one.unionByName(other), parts)


def in_runs(findings: "DataFrame") -> "DataFrame":
    """What follows one another without a gap is one finding, from the first offset to the last end."""
    alike = ", ".join(ALIKE)
    order = f"over (partition by {alike} order by offset, end"
    reached = f"max(end) {order} rows between unbounded preceding and 1 preceding)"
    # By rule alone: then nothing that follows moves rows again.
    begun = findings.repartition("rule").selectExpr("*", f"if(offset <= {reached}, 0, 1) as begins")
    numbered = begun.selectExpr("*", f"sum(begins) {order}) as run")
    runs = numbered.groupBy(*ALIKE, "run").agg(
        F.expr("min(offset) as offset"), F.expr("max(end) as end"), F.expr("min_by(what, offset) as what")
    )
    return runs.select(*FINDING.names)


def of_several(runs: "DataFrame") -> "DataFrame":
    """What was found alike in several replicas is one finding, with `broker` null."""
    same = runs.groupBy("rule", "severity", "topic", "partition", "offset", "end").agg(
        F.expr("array_sort(collect_set(broker)) as brokers"), F.expr("min(what) as what")
    )
    return same.selectExpr(
        *("rule", "severity", "topic", "partition"),
        "if(size(brokers) = 1, brokers[0], null) as broker",
        *("offset", "end"),
        "if(size(brokers) > 1, concat('brokers ', concat_ws(', ', brokers), ': ', what), what) as what",
    )


def first_of_each(findings: "DataFrame", limit: int) -> "DataFrame":
    """The first `limit` findings of each rule, each with `count`, how many the rule has."""
    assert limit >= 1, "a rule without a row would have no count"
    order = "order by topic, partition, offset, broker, end"
    ranked = findings.selectExpr(
        "*",
        "count(*) over (partition by rule) as count",
        f"row_number() over (partition by rule {order}) as rank",
    )
    return ranked.where(f"rank <= {limit}").drop("rank")
