"""The format "strandline": one data source for topics, read and written, in batches and as streams."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from strandline.client.config import ClientConfig
from strandline.client.errors import UnknownTopic
from strandline_spark.errors import BadOption, Missing
from strandline_spark.schemas import TOPIC_ROW, TOPIC_ROW_WITH_HEADERS
from strandline_spark.topic.batch import Snapshot, TopicReader, snapshot
from strandline_spark.topic.options import SUBSCRIPTIONS, batch_options, boolean, fold, stream_options
from strandline_spark.topic.stream import TopicStreamReader

if TYPE_CHECKING:
    import pyarrow

SINK = "strandline_spark.sink.writer"  # imported where something is written: readers do without


class DefaultSource(DataSource):
    """`spark.read.format("strandline")`, `readStream`, `write`, `writeStream`. Spark finds it by itself."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        # Spark makes the source once, at load(), and keeps it as bytes: what is noted here holds for every action.
        self.ends: Snapshot | None = None
        if any(name.lower() in fold(options) for name in SUBSCRIPTIONS):
            self.ends = ends_at_load(options)

    @classmethod
    def name(cls) -> str:
        return "strandline"

    def schema(self) -> StructType:
        with_headers = boolean(fold(self.options), "includeHeaders", default=False)
        return TOPIC_ROW_WITH_HEADERS if with_headers else TOPIC_ROW

    def reader(self, schema: StructType) -> DataSourceReader:
        return TopicReader(self.options, arrow_schema(schema), self.ends)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # PySpark's name
        return TopicStreamReader(self.options, arrow_schema(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        writer: DataSourceWriter = import_module(SINK).batch_writer(self.options, schema, overwrite)
        return writer

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # PySpark's name
        writer: DataSourceStreamWriter = import_module(SINK).stream_writer(self.options, schema, overwrite)
        return writer


def ends_at_load(options: Mapping[str, str]) -> Snapshot | None:
    """None for a stream, and for topics that are not there. Raises BadOption where the options make no sense, and
    KafkaError if the cluster does not report them: each action would read to another end then."""
    try:
        batch_options(options)
    except BadOption:
        stream_options(options)  # Spark does not say here which of the two is read.
        ClientConfig.of(options)
        return None
    try:
        return snapshot(options)
    except (Missing, UnknownTopic):
        return None  # Perhaps it does not exist yet: whoever reads it says so.


def arrow_schema(schema: StructType) -> "pyarrow.Schema":
    """Raises BadOption for a column that a topic does not have, or not as that type."""
    columns = {field.name: field.dataType for field in TOPIC_ROW_WITH_HEADERS.fields}
    for field in schema.fields:
        if field.name not in columns:
            raise BadOption(f"a topic has no column {field.name!r}", f"It has {', '.join(columns)}.")
        wanted = columns[field.name]
        if field.dataType != wanted:
            raise BadOption(
                f"the column {field.name!r} of a topic is {wanted.simpleString()}, "
                f"and not {field.dataType.simpleString()}",
                "Read it as it is, and cast it.",
            )
    return to_arrow_schema(schema, timezone="UTC")
