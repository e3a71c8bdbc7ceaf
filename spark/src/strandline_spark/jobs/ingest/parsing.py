"""Records become columns; what cannot becomes a row for quarantine, with the rule it broke and the reason.

One pass, and no row is lost: each record comes out as one row, whose hidden column says whether it is good.
"""

from collections.abc import Sequence

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.ingest.columns import EPOCHS, Column, ddl
from strandline_spark.jobs.ingest.declaration import KeyOf, ValueOf
from strandline_spark.schemas import rows as schema_of
from strandline_spark.tables.schema import quoted
from strandline_spark.tables.writing import QUARANTINE

QUARANTINE_FIELDS = schema_of(  # of a row that the table does not take, besides topic, partition and offset
    "timestamp timestamp",
    "key binary",
    "value binary",
    "row string",  # JSON of the row that did not meet an expectation
    "rule string",
    "reason string",
)
QUARANTINED = StructType([*schema_of("topic string", "partition int", "offset long"), *QUARANTINE_FIELDS])
PARSED = "__strandline_parsed"
CORRUPT = "__strandline_corrupt"
RAW = "__strandline_value"  # the record's value, for a row that turns out not to be as expected
TEXT = "__strandline_text"
YEAR_1_S, YEAR_10000_S = -62_135_596_800, 253_402_300_800  # what lies between is a time to every reader of a table
JSON_SPACE = " \t\r\n"
SHOWN_CHARS = 60  # of a value, in a reason


def parse(records: DataFrame, value: ValueOf, key: KeyOf, columns: Sequence[Column]) -> DataFrame:
    """Topic rows in; topic, partition, offset, timestamp, key, headers, the value's columns, RAW and QUARANTINE out."""
    text = F.col("value").cast("string")
    rules: list[tuple[str, Expression, Expression]] = []
    parsed = records.withColumn(TEXT, text) if value.format != "binary" else records
    if value.format != "binary":
        if value.nulls == "quarantine":
            rules.append(("null", F.col("value").isNull(), F.lit("the record has no value")))
        rules.append(("encoding", ~F.is_valid_utf8(TEXT), F.lit("the value is not UTF-8")))
    if value.format == "json":
        schema = ddl(columns, f"{quoted(CORRUPT)} STRING")
        options = {"columnNameOfCorruptRecord": CORRUPT}
        try:
            parsed = parsed.withColumn(PARSED, F.from_json(TEXT, schema, options))
        except (AnalysisException, ParseException) as error:
            raise StrandlineError(
                f"[value] columns: {first_line(error)}", 'types are those of Spark\'s SQL: id = "long not null"'
            ) from None
        rules += json_rules(value, columns)
    if key.format == "text":
        rules.append(("key encoding", ~F.is_valid_utf8(F.col("key").cast("string")), F.lit("the key is not UTF-8")))
    names = ["topic", "partition", "offset", "timestamp"]
    kept: list[Expression] = [F.col(name) for name in names]
    if key.format != "none":
        kept.append(F.col("key").cast("string").alias("key") if key.format == "text" else F.col("key"))
    if "headers" in records.columns:
        kept.append(F.col("headers"))
    kept += value_columns(value, columns)
    return parsed.select(*kept, F.col("value").alias(RAW), judged(rules).alias(QUARANTINE))


def value_columns(value: ValueOf, columns: Sequence[Column]) -> list[Expression]:
    match value.format:
        case "json":
            return [converted(each).alias(each.name) for each in columns]
        case "text":
            return [F.col(TEXT).alias("value")]
    return [F.col("value")]


def parsed_field(column: Column) -> Expression:
    found = F.col(PARSED)
    for name in column.path:
        found = found.getField(name)
    return found


def converted(column: Column) -> Expression:
    found = parsed_field(column)
    match column.type:
        case "timestamp_seconds":
            return F.when(is_time(column), F.timestamp_seconds(found))
        case "timestamp_millis":
            return F.when(is_time(column), F.timestamp_millis(found))
        case "timestamp_micros":
            return F.when(is_time(column), F.timestamp_micros(found))
    assert column.type not in EPOCHS
    return found


def is_time(column: Column) -> Expression:
    """Is the number one of the years 1 to 9999? A number in a smaller unit than was declared mostly is not; to convert
    it ends the job where it has no place in 64 bits of microseconds, and others cannot read it where it has."""
    found, unit = parsed_field(column), EPOCHS[column.type]
    return (found >= YEAR_1_S * unit) & (found < YEAR_10000_S * unit)


def json_rules(value: ValueOf, columns: Sequence[Column]) -> list[tuple[str, Expression, Expression]]:
    """What is wrong with a JSON value, in the order of asking."""
    is_corrupt = F.col(PARSED).getField(CORRUPT).isNotNull()
    is_object = F.ltrim(F.col(TEXT), F.lit(JSON_SPACE)).startswith("{")
    # Spark takes the first of several documents and says nothing of the rest; as a list they can be counted.
    is_one = F.coalesce(F.json_array_length(F.concat(F.lit("["), F.col(TEXT), F.lit("]"))) == 1, F.lit(False))
    start = F.left(TEXT, F.lit(SHOWN_CHARS))
    is_there = F.col("value").isNotNull()
    rules = [("json", is_there & ~(is_one & is_object), F.concat(F.lit("the value is not one JSON object: "), start))]
    misfits = [misfit(each) for each in columns]
    reason = F.concat_ws("; ", *misfits)
    message = F.when(reason != "", reason).otherwise(F.concat(F.lit("the value does not fit its columns: "), start))
    is_misfit = is_corrupt
    for column in columns:
        if column.type in EPOCHS:
            is_misfit = is_misfit | ~is_time(column)
    rules.append(("type", is_misfit, message))
    required = [each for each in columns if each.required]
    if required:
        absent = [F.when(parsed_field(each).isNull(), F.lit(f"{'.'.join(each.path)} is missing")) for each in required]
        anything = absent[0].isNotNull()
        for each in absent[1:]:
            anything = anything | each.isNotNull()
        rules.append(("required", is_there & anything, F.concat_ws("; ", *absent)))
    if value.unknown == "quarantine":
        known = F.array(*[F.lit(name) for name in sorted({each.path[0] for each in columns})])
        unknown = F.array_except(F.json_object_keys(TEXT), known)
        rules.append(
            ("unknown", F.size(unknown) > 0, F.concat(F.lit("fields without a column: "), F.concat_ws(", ", unknown)))
        )
    return rules


def misfit(column: Column) -> Expression:
    """`amount is not of type bigint: abc`, or null where the field is as declared."""
    path = "$" + "".join(f"['{name}']" for name in column.path)
    found = F.get_json_object(TEXT, path)
    shown = F.left(found, F.lit(SHOWN_CHARS))
    start = f"{'.'.join(column.path)} is not of type "
    text = F.concat(F.lit(f"{start}{column.json_type}: "), shown)
    message = F.when(found.isNotNull() & parsed_field(column).isNull(), text)
    if column.type not in EPOCHS:
        return message
    return message.when(~is_time(column), F.concat(F.lit(f"{start}{column.type}: "), shown))


def judged(rules: Sequence[tuple[str, Expression, Expression]]) -> Expression:
    """Null for a good record, else what the quarantine table says of it, by the first rule that it breaks."""
    found: Expression | None = None
    for rule, is_broken, reason in rules:
        rejection = F.struct(
            F.col("timestamp"),
            F.col("key"),
            F.col("value"),
            F.lit(None).cast("string").alias("row"),
            F.lit(rule).alias("rule"),
            reason.alias("reason"),
        )
        found = F.when(is_broken, rejection) if found is None else found.when(is_broken, rejection)
    return (
        F.lit(None).cast(QUARANTINE_FIELDS) if found is None else found.otherwise(F.lit(None).cast(QUARANTINE_FIELDS))
    )


def first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
