"""The rows that cross a boundary: what sources give, what jobs take, what they find.

Timestamps are in UTC, offsets as in Kafka: `last_*` inclusive, `end` exclusive, −1 not known.
"""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

TYPES: dict[str, DataType] = {
    "binary": BinaryType(),
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "string": StringType(),
    "timestamp": TimestampType(),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
}


def rows(*columns: str) -> StructType:
    """`"offset long"` is a column; all may be null, as Spark's Kafka connector has it."""
    return StructType([StructField(name, TYPES[kind]) for name, kind in (column.split() for column in columns)])


TOPIC_ROW = rows(
    "key binary",
    "value binary",
    "topic string",
    "partition int",
    "offset long",
    "timestamp timestamp",
    "timestampType int",
)
TOPIC_ROW_WITH_HEADERS = StructType([*TOPIC_ROW.fields, StructField("headers", TYPES["headers"])])

REPLICA = ("broker int", "directory string", "topic string", "topic_id string", "partition int")

REPLICA_BATCH = rows(
    *REPLICA,
    "segment long",  # the first offset that the file may have: its name
    "position long",  # bytes from the file's start
    "size int",
    "base_offset long",
    "last_offset long",
    "leader_epoch int",
    "records int",
    "producer_id long",
    "producer_epoch int",
    "base_sequence int",
    "attributes int",
    "crc long",
    "crc_ok boolean",
    "base_timestamp timestamp",
    "max_timestamp timestamp",
    "fault string",  # null; torn: the file ends in a batch; corrupt: none begins here; crc; misplaced: wrong offsets
)
REPLICA_RECORD = rows(
    *REPLICA,
    "segment long",
    "position long",  # of the record's batch
    "offset long",
    "timestamp timestamp",
    "timestampType int",
    "key binary",
    "value binary",
    "headers headers",
    "leader_epoch int",
    "producer_id long",
    "producer_epoch int",
    "sequence int",
    "is_control boolean",
    "is_transactional boolean",
)
REPLICA_SEGMENT = rows(
    *REPLICA,
    "segment long",
    "size long",
    "is_active boolean",
    "index_entries long",
    "index_last_offset long",
    "time_index_entries long",
    "producer_snapshot boolean",
)
REPLICA_INDEX = rows(*REPLICA, "segment long", "entry long", "offset long", "position long")
REPLICA_CHECKPOINT = rows(
    *REPLICA,
    "high_watermark long",
    "recovery_point long",
    "log_start_offset long",
    "clean_shutdown boolean",
    "log_end_offset long",
    "cleaned_to long",  # how far a cleaner has been; null: never, so that the log has no gaps
)
REPLICA_EPOCH = rows(*REPLICA, "leader_epoch int", "start_offset long")

ACKNOWLEDGED = rows("topic string", "partition int", "offset long", "crc32 long", "time_ms long")
FINDING = rows(
    "rule string",
    "severity string",
    "topic string",
    "partition int",
    "broker int",  # null: more than one
    "offset long",
    "end long",
    "what string",
)

COUNTS = MapType(StringType(), LongType())
SEED_SPAN = rows("run string", "first long", "last long")  # both seeds inclusive
SEED_BLOCK = rows("run string", "first long", "last long", "seeds long", "failed long", "ms long")
SEED = StructType(
    [
        *rows(
            "seed long",
            "run string",  # first; again: once more, in a process that hashes differently
            "verdict string",  # ok, failed, crashed, timed out, died
            "check string",  # what was broken
            "error string",  # its evidence, and the last lines of the story
            "replay string",  # the command that shows it
            "digest string",  # of all effects
            "ms long",  # on the wall
            "virtual_ms long",
            "events long",  # that nodes handled
            "operations long",  # of clients
            "exceeded long",  # partitions where more failed than is promised to survive
            "code_version string",
            "place string",  # host:process
        ).fields,
        StructField("faults", COUNTS),  # how often each kind struck
        StructField("seen", COUNTS),  # and what else happened
    ]
)

KEY_STRUCT = StructType(
    [StructField("topic", StringType()), StructField("topic_id", BinaryType()), StructField("partition", IntegerType())]
)
RECORD_STRUCT = StructType([StructField("key", KEY_STRUCT), *rows("value binary", "offset long").fields])
HISTORY_LINE = StructType(  # docs/histories.md; a line of JSON, or a row of a table, has some of these
    [
        *rows(
            "record string",
            "run string",
            "index long",
            "process string",
            "kind string",
            "began_ms long",
            "ended_ms long",
            "outcome string",
            "acks int",
            "is_idempotent boolean",
        ).fields,
        StructField("writes", ArrayType(RECORD_STRUCT)),
        StructField("reads", ArrayType(RECORD_STRUCT)),
        *rows("error string", "transactional_id string", "is_read_committed boolean").fields,
        StructField("key", KEY_STRUCT),
        *rows(
            "trimmed long",
            "final string",
            "is_exceeded boolean",
            "exceeded_since_ms long",
            "is_gone boolean",
            "is_duplicating boolean",
            "is_subscribed boolean",
        ).fields,
        StructField("ledger", ArrayType(ArrayType(LongType()))),
    ]
)
HISTORY_PART = rows(
    "run string", "topic string", "topic_id binary", "partition int", "index long", "role string", "content binary"
)
HISTORY_MARK = rows(
    "run string", "process string", "topic string", "topic_id binary", "partition int", "index long", "content binary"
)
HISTORY_JUDGED = StructType(
    [
        *rows(
            "run string",
            "topic string",
            "topic_id string",  # Kafka's text of it
            "partition int",
            "name string",  # of the anomaly, Jepsen's; null: the row is about the key, or a problem
            "tolerated string",  # why; null: it is a violation
            "text string",
        ).fields,
        StructField("offsets", ArrayType(LongType())),
        StructField("values", ArrayType(BinaryType())),
        StructField("writers", ArrayType(StringType())),  # operations, for people
        StructField("readers", ArrayType(StringType())),
        *rows(
            "was_committed boolean",
            "proved_ms long",  # null: not before the end
            "operations long",
            "writes long",
            "reads long",
            "problem string",  # what could not be judged
            "lines long",  # that have the problem
        ).fields,
    ]
)

LAG_SAMPLE = rows(  # one reader, one partition, one time
    "time timestamp",
    "kind string",  # group, query, or topic: nobody reads, it says what was written
    "reader string",  # the group or query
    "topic string",
    "partition int",
    "log_start_offset long",
    "end_offset long",  # high watermark, or last stable offset with read_committed
    "position long",  # the next to be read; null: nothing was committed
    "lag long",
    "expired long",  # deleted before it was read
    "delay_ms long",  # age of the next record
    "batch long",  # of a query: the last committed one
)
EMITTED = rows("lane int", "partition int", "rows long", "end_offset long")  # end_offset: behind the lane's last batch
