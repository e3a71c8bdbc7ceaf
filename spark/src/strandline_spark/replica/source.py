"""`format("strandline-replica")`: the logs of brokers as tables, from their directories or over the wire."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline_spark.decode import Columns
from strandline_spark.errors import BadOption
from strandline_spark.replica import remote
from strandline_spark.replica.options import SCHEMAS, Request, parse
from strandline_spark.replica.planning import Logs, Piece, Pieces, Unplanned, plan
from strandline_spark.replica.rows import UNREAD, batch_rows, record_rows, row_of_unplanned
from strandline_spark.replica.walking import Damage, Judged, judged


class ReplicaSource(DataSource):
    """`spark.read.format("strandline-replica").option(…).load("/node1/logs,/node2/logs")`.

    | option | default | |
    |---|---|---|
    | path | | log directories, with commas between; wildcards; mounted or copied |
    | kafka.bootstrap.servers, kafka.* | | instead of a path: each broker's own replica, up to its high watermark |
    | level | batch | batch, record, segment, index, checkpoint, epoch; over the wire batch and record |
    | subscribe, subscribePattern, assign | all | which topics and partitions; the metadata log only by its name |
    | splitBytes | 128 MiB | small segments are read together up to it, large ones divided above it |
    | minPartitions | cores | smaller splits, if there would be fewer |
    | node | meta.properties | whose directory it is, where that file is missing |
    | mode | FAILFAST | of records: DROPMALFORMED leaves out what is damaged |
    | whenChanged | fail | of batches: with report, a log that was cut, compacted or deleted between plan and read is a
      row of fault "changed", one whose broker does not answer a row of fault "unreachable", one whose disk gives an
      error a row of fault "unreadable"; of records and indexes: with skip, they are left out |

    A schema with fewer columns (`spark.read.schema("offset long, value binary")`) makes only those.
    """

    @classmethod
    def name(cls) -> str:
        return "strandline-replica"

    def schema(self) -> StructType:
        return SCHEMAS[parse(self.options).level]

    def reader(self, schema: StructType) -> "ReplicaReader":
        request = parse(self.options)
        config = None if request.paths else ClientConfig.of(dict(request.kafka))
        return ReplicaReader(request, schema, config)


class ReplicaReader(DataSourceReader):
    """Reads what one query asks for. Pickled into every task."""

    def __init__(self, request: Request, schema: StructType, config: ClientConfig | None = None) -> None:
        self.request = request
        self.config = config  # of the brokers, if no log directories are read
        self.schema = schema
        check_schema(request.level, schema)

    def partitions(self) -> list[InputPartition]:
        return plan(self.request) if self.config is None else remote.plan(self.request, self.config)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Arrow batches, or rows of the levels that have few. Raises `LogChanged` if what was planned is there no
        longer: then the rows that were given do not count; and `UnreadableLog`."""
        match partition:
            case Pieces(pieces=pieces):
                for piece in pieces:
                    yield from self.rows(piece, judged(piece))
            case remote.Ranges(ranges=ranges):
                assert self.config is not None
                with Cluster(self.config) as cluster:
                    for offsets in ranges:
                        yield from self.rows(offsets, remote.judged_remotely(cluster, offsets))
            case Unplanned() as unplanned:
                if self.request.level == "batch":
                    yield row_of_unplanned(unplanned, to_arrow_schema(self.schema, timezone="UTC"))
            case Logs(replicas=replicas):
                from strandline_spark.replica.files import ROWS_OF

                names = self.schema.fieldNames()
                for replica in replicas:
                    rows = ROWS_OF[self.request.level](replica)
                    for row in readable(rows) if self.request.reports_changes else rows:
                        known = {**replica._asdict(), **row}
                        yield tuple(known[name] for name in names)

    def rows(self, part: Piece | remote.Offsets, source: Iterator[Judged | Damage]) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self.schema, timezone="UTC")
        if self.request.level == "batch":
            return batch_rows(part, source, schema, reports_changes=self.request.reports_changes)
        found = record_rows(part, source, Columns.of(schema), drops_damage=self.request.drops_damage)
        return readable(found) if self.request.reports_changes else found


def readable(rows: Iterator[Any]) -> Iterator[Any]:
    """As far as the log is what it was when the read was planned, and its disk or its broker gives it."""
    try:
        yield from rows
    except UNREAD:
        return


def check_schema(level: str, schema: StructType) -> None:
    """A schema that the user gave may leave columns out, in any order."""
    known = {field.name: field.dataType for field in SCHEMAS[level]}
    for field in schema:
        if field.name not in known:
            raise BadOption(f"level {level} has no column {field.name!r}", f"there are {', '.join(known)}")
        if field.dataType != known[field.name]:
            raise BadOption(
                f"the column {field.name!r} is {known[field.name].simpleString()}, not {field.dataType.simpleString()}",
                "cast it in the query",
            )
