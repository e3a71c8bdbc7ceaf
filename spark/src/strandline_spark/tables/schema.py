"""Columns of a table: which it may have, which it can be partitioned by, and whether they are those it has already."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from strandline_spark.errors import StrandlineError
from strandline_spark.tables.writing import HIDDEN

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

IN_PATHS = ("string", "boolean", "tinyint", "smallint", "int", "bigint", "date")


def nullable(schema: "StructType") -> "StructType":
    """The same columns, all of which may be null: whether SQL can prove that one is never null may change any day."""
    from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

    def loose(kind: DataType) -> DataType:
        match kind:
            case StructType():
                return StructType([StructField(field.name, loose(field.dataType)) for field in kind])
            case ArrayType():
                return ArrayType(loose(kind.elementType))
            case MapType():
                return MapType(kind.keyType, loose(kind.valueType))
        return kind

    found = loose(schema)
    assert isinstance(found, StructType)
    return found


def arrow_schema(schema: "StructType") -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def check_columns(schema: "StructType", partition_by: Sequence[str]) -> None:
    """Raises StrandlineError for names that are given twice or taken, and for a partitioning that cannot be."""
    names = [field.name for field in schema]
    lowered = [name.lower() for name in names]
    twice = sorted({name for name in lowered if lowered.count(name) > 1})
    if twice:
        raise StrandlineError(
            f"two columns have the name {twice[0]} (upper and lower case do not differ)",
            "give one of them another name",
        )
    taken = [name for name in names if name in HIDDEN]
    if taken:
        raise StrandlineError(f"the column name {taken[0]} is taken", "give it another name")
    for name in partition_by:
        if name not in names:
            raise StrandlineError(
                f"the table cannot be partitioned by {name}: it has no such column",
                f"it has {', '.join(names)}; or give an expression: {name} = date(timestamp)",
            )
        kind = schema[name].dataType.simpleString()
        if kind not in IN_PATHS:
            raise StrandlineError(
                f"a table cannot be partitioned by {name}, which is {kind}",
                f"possible are {', '.join(IN_PATHS)}; of a timestamp take day = date({name})",
            )
    if len(set(partition_by)) < len(partition_by) or set(names) == set(partition_by):
        raise StrandlineError(f"a table of {', '.join(names)} cannot be partitioned by {', '.join(partition_by)}")


def new_columns(table: str, has: "StructType", wanted: "StructType") -> "StructType":
    """The columns that a table lacks. Raises StrandlineError with the differences if rows will lack some of its own."""
    from pyspark.sql.types import StructType

    if any(field.name not in wanted.names or field.dataType != wanted[field.name].dataType for field in nullable(has)):
        raise differs(table, column_differences(has, wanted))
    return StructType([field for field in wanted if field.name not in has.names])


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def differs(table: str, differences: Sequence[str]) -> StrandlineError:
    return StrandlineError(
        f"{table} has other columns: {'; '.join(differences)}",
        "write to a new table, or make the SQL give the columns that the table has",
    )


def repartitioned(table: str, has: Sequence[str], wanted: Sequence[str]) -> StrandlineError:
    return StrandlineError(
        f"{table} is partitioned by {', '.join(has) or 'nothing'}, not by {', '.join(wanted) or 'nothing'}",
        "keep the table's partitioning, or write to a new table",
    )


def narrow(schema: Any) -> Any:
    """An Arrow schema with the types that Spark has: no large text, no views."""
    import pyarrow as pa

    def plain(kind: Any) -> Any:
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return pa.string()
        if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
            return pa.binary()
        if pa.types.is_large_list(kind) or pa.types.is_list(kind):
            return pa.list_(pa.field("element", plain(kind.value_type)))
        if pa.types.is_map(kind):
            return pa.map_(plain(kind.key_type), plain(kind.item_type))
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(field.name, plain(field.type)) for field in kind])
        return kind

    return pa.schema([pa.field(field.name, plain(field.type)) for field in schema])


def column_differences(has: "StructType", wanted: "StructType") -> Sequence[str]:
    old = {field.name: field.dataType.simpleString() for field in has}
    new = {field.name: field.dataType.simpleString() for field in wanted}
    found = [f"{name} {kind} is only in the table" for name, kind in old.items() if name not in new]
    found += [f"{name} {kind} is not in the table" for name, kind in new.items() if name not in old]
    found += [f"{name} is {old[name]} there, not {new[name]}" for name in new if name in old and old[name] != new[name]]
    return found
