"""What a sink is asked for, checked before anything is written: its options, and the columns of what is to be written.

The rules and their words are the official connector's (`KafkaWriter.validateQuery`), so that a query that runs there
runs here.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from strandline.base.value import Value
from strandline.client.config import ACKS_ALL, ClientConfig
from strandline_spark.errors import BadOption
from strandline_spark.sink.exactly_once.names import checked_name
from strandline_spark.topic.options import fold, refuse_unknown, whole

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

AT_LEAST_ONCE, EXACTLY_ONCE = "at-least-once", "exactly-once"


class SinkOptions(Value, frozen=True):
    config: ClientConfig
    topic: str | None  # None: the column says
    exactly_once: bool = False
    name: str | None = None  # of an exactly-once batch write that may be repeated
    version: int = 0

    @staticmethod
    def of(options: Mapping[str, str], schema: "StructType", *, overwrite: bool = False) -> "SinkOptions":
        """Raises `BadOption`."""
        given = fold(options)
        if overwrite:
            raise BadOption(
                "Save mode overwrite not allowed for Kafka. Allowed save mode is append.",
                "topics can only be appended to: mode('append')",
            )
        config = ClientConfig.of(options)
        refuse_unknown(options)
        topic = given.get("topic")
        if topic is not None and not topic.strip():
            raise BadOption("option topic is empty")
        check_columns(schema, topic)
        guarantee = given.get("deliveryguarantee", AT_LEAST_ONCE).strip().lower()
        if guarantee not in (AT_LEAST_ONCE, EXACTLY_ONCE):
            raise BadOption(f"option deliveryGuarantee: '{guarantee}' is neither {AT_LEAST_ONCE} nor {EXACTLY_ONCE}")
        if guarantee == AT_LEAST_ONCE:
            refuse_names(given)
            return SinkOptions(config, topic)
        if config.acks != ACKS_ALL or not config.enable_idempotence:
            raise BadOption(
                f"deliveryGuarantee={EXACTLY_ONCE} needs an idempotent producer, and kafka.acks={config.acks},"
                f" kafka.enable.idempotence={str(config.enable_idempotence).lower()}",
                "leave both options out",
            )
        name = given.get("transactionname")
        version = whole(given, "transactionVersion", 0)
        if version and name is None:
            raise BadOption("option transactionVersion needs transactionName: it counts the writes of one name")
        return SinkOptions(config, topic, True, None if name is None else checked_name(name), version)


def refuse_names(given: Mapping[str, str]) -> None:
    for name in ("transactionName", "transactionVersion"):
        if name.lower() in given:
            raise BadOption(f"option {name} has no effect without deliveryGuarantee={EXACTLY_ONCE}")


def check_columns(schema: "StructType", topic: str | None) -> None:
    """Raises `BadOption`. Columns that records do not have are left out, as in the official connector."""
    from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StringType, StructType

    types = {field.name.lower(): field.dataType for field in schema.fields}
    if "topic" not in types and topic is None:
        raise BadOption(
            "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
        )
    if "topic" in types and not isinstance(types["topic"], StringType):
        raise BadOption(f"topic type must be a STRING, not {types['topic'].simpleString()}")
    if "value" not in types:
        raise BadOption("Required attribute 'value' not found.", "name a column so: df.selectExpr('… AS value')")
    for name in ("key", "value"):
        if name in types and not isinstance(types[name], StringType | BinaryType):
            raise BadOption(
                f"{name} attribute type must be a STRING or BINARY, not {types[name].simpleString()}",
                f"cast it: CAST({name} AS STRING), or to_json(…) for a struct",
            )
    if "partition" in types and not isinstance(types["partition"], IntegerType):
        raise BadOption(f"partition attribute type must be an INT, not {types['partition'].simpleString()}")
    headers = types.get("headers")
    if headers is not None:
        pair = headers.elementType if isinstance(headers, ArrayType) else None
        kinds = [type(field.dataType) for field in pair.fields] if isinstance(pair, StructType) else []
        if kinds != [StringType, BinaryType]:
            raise BadOption(
                "headers attribute type must be an ARRAY<STRUCT<key: STRING, value: BINARY>>,"
                f" not {headers.simpleString()}"
            )
