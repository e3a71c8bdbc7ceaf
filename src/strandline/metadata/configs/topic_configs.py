"""The configuration keys of a topic: Kafka's names, defaults and limits, one row each.

The controller validates with this table, brokers resolve with it: a topic's own value, else the node's value of the
first synonym that the node's configuration sets, else the default.

Invariants:
  - a key that is not in the table is refused, never stored;
  - every synonym is a key of the node's configuration (asserted beside its table).
"""

import re
from collections.abc import Mapping

from strandline.metadata.configs.config_key import (
    BOOLEAN,
    DOUBLE,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    Check,
    ConfigKey,
    ConfigValue,
    OfList,
    at_least,
    between,
    each_of,
    one_of,
    show_value,
)

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
# KIP-966: what to do for a partition that has lost all of its eligible leaders.
UNCLEAN_RECOVERY_STRATEGIES = ("None", "Balanced", "Aggressive")

LEADER_THROTTLED, FOLLOWER_THROTTLED = (f"{side}.replication.throttled.replicas" for side in ("leader", "follower"))


def gzip_level(value: ConfigValue) -> str | None:
    """-1 is zlib's own default; 0 (no compression) is not a level here, as in Kafka."""
    return None if value == -1 or between(1, 9)(value) is None else "Value must be between 1 and 9 or equal to -1"


def throttled_replicas(key: str) -> Check:
    def check(value: ConfigValue) -> OfList | None:
        assert isinstance(value, tuple)
        if "".join(value) == "*" or all(is_throttled_replica(entry) for entry in value if entry):
            return None
        form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        shown = f"[{', '.join(value)}]"
        return OfList(f"{key} must be the literal '*' or a list of replicas in the following format: {form}", shown)

    return check


THROTTLED_REPLICA = re.compile("[0-9]{1,10}:[0-9]{1,10}")


def is_throttled_replica(entry: str) -> bool:
    """Numbers that a broker can read: not every digit of Unicode is one, nor is one too long to be parsed."""
    return THROTTLED_REPLICA.fullmatch(entry) is not None


ROWS = (
    ConfigKey("cleanup.policy", LIST, ("delete",), each_of("compact", "delete"), (("log.cleanup.policy", 1),)),
    ConfigKey("compression.gzip.level", INT, -1, gzip_level, (("compression.gzip.level", 1),)),
    ConfigKey("compression.lz4.level", INT, 9, between(1, 17), (("compression.lz4.level", 1),)),
    ConfigKey("compression.type", STRING, "producer", one_of(*COMPRESSION_TYPES), (("compression.type", 1),)),
    ConfigKey("compression.zstd.level", INT, 3, between(-131072, 22), (("compression.zstd.level", 1),)),
    ConfigKey("delete.retention.ms", LONG, DAY, at_least(0), (("log.cleaner.delete.retention.ms", 1),)),
    ConfigKey("file.delete.delay.ms", LONG, MINUTE, at_least(0), (("log.segment.delete.delay.ms", 1),)),
    ConfigKey("flush.messages", LONG, LONG_MAX, at_least(1), (("log.flush.interval.messages", 1),)),
    ConfigKey(
        "flush.ms",
        LONG,
        LONG_MAX,
        at_least(0),
        (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    ),
    ConfigKey(FOLLOWER_THROTTLED, LIST, (), throttled_replicas(FOLLOWER_THROTTLED)),
    ConfigKey("index.interval.bytes", INT, 4096, at_least(0), (("log.index.interval.bytes", 1),)),
    ConfigKey("internal.segment.bytes", INT, None, at_least(14), is_internal=True),  # smaller than users may (KIP-1030)
    ConfigKey(LEADER_THROTTLED, LIST, (), throttled_replicas(LEADER_THROTTLED)),
    ConfigKey("local.retention.bytes", LONG, -2, at_least(-2), (("log.local.retention.bytes", 1),)),
    ConfigKey("local.retention.ms", LONG, -2, at_least(-2), (("log.local.retention.ms", 1),)),
    ConfigKey("max.compaction.lag.ms", LONG, LONG_MAX, at_least(1), (("log.cleaner.max.compaction.lag.ms", 1),)),
    ConfigKey("max.message.bytes", INT, 1024 * 1024 + 12, at_least(0), (("message.max.bytes", 1),)),
    ConfigKey("message.timestamp.after.max.ms", LONG, HOUR, at_least(0), (("log.message.timestamp.after.max.ms", 1),)),
    ConfigKey(
        "message.timestamp.before.max.ms", LONG, LONG_MAX, at_least(0), (("log.message.timestamp.before.max.ms", 1),)
    ),
    ConfigKey(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        (("log.message.timestamp.type", 1),),
    ),
    ConfigKey("min.cleanable.dirty.ratio", DOUBLE, 0.5, between(0, 1), (("log.cleaner.min.cleanable.ratio", 1),)),
    ConfigKey("min.compaction.lag.ms", LONG, 0, at_least(0), (("log.cleaner.min.compaction.lag.ms", 1),)),
    ConfigKey("min.insync.replicas", INT, 1, at_least(1), (("min.insync.replicas", 1),)),
    ConfigKey("preallocate", BOOLEAN, False, None, (("log.preallocate", 1),)),
    ConfigKey("remote.storage.enable", BOOLEAN, False),
    ConfigKey("retention.bytes", LONG, -1, None, (("log.retention.bytes", 1),)),
    ConfigKey(
        "retention.ms",
        LONG,
        7 * DAY,
        at_least(-1),
        (("log.retention.ms", 1), ("log.retention.minutes", MINUTE), ("log.retention.hours", HOUR)),
    ),
    ConfigKey("segment.bytes", INT, 1 << 30, between(1024 * 1024, INT_MAX), (("log.segment.bytes", 1),)),
    ConfigKey("segment.index.bytes", INT, 10 * 1024 * 1024, at_least(4), (("log.index.size.max.bytes", 1),)),
    ConfigKey("segment.jitter.ms", LONG, 0, at_least(0), (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR))),
    ConfigKey("segment.ms", LONG, 7 * DAY, at_least(1), (("log.roll.ms", 1), ("log.roll.hours", HOUR))),
    ConfigKey("unclean.leader.election.enable", BOOLEAN, False, None, (("unclean.leader.election.enable", 1),)),
    ConfigKey(
        "unclean.recovery.strategy",
        STRING,
        "Balanced",
        one_of(*UNCLEAN_RECOVERY_STRATEGIES),
        (("unclean.recovery.strategy", 1),),
    ),
)

TOPIC_CONFIGS: dict[str, ConfigKey] = {key.name: key for key in ROWS}
SHOWN = tuple(key for key in ROWS if not key.is_internal)
MIN_ISR_KEY = "min.insync.replicas"
# Of these no node's own file counts. They say what is committed, so controller and leader must have one value: that of
# the metadata log, into which the first active controller writes what its file says (T1).
STATE_KEYS = frozenset({MIN_ISR_KEY})
assert len(TOPIC_CONFIGS) == len(ROWS), "a key has one row"
assert TOPIC_CONFIGS.keys() >= STATE_KEYS


def why_invalid(name: str, value: str) -> str | None:
    """Why may a topic not have this configuration? None means it may."""
    key = TOPIC_CONFIGS.get(name)
    if key is None:
        return f"Unknown topic config name: {name}"
    return key.why_invalid(value)


def topic_default(name: str, node: Mapping[str, ConfigValue]) -> tuple[ConfigValue, str | None]:
    """The value of a topic that does not set `name`, on a node whose configuration sets `node` explicitly, and the key
    of the node's configuration that it comes from (None: the table's default). For one of `STATE_KEYS` that is only
    what a controller proposes to the cluster."""
    key = TOPIC_CONFIGS[name]
    for synonym, factor in key.synonyms:
        value = node.get(synonym)
        if value is None:
            continue
        if factor == 1:
            return value, synonym
        assert isinstance(value, int)
        # A negative retention means "no limit" in every unit.
        return (value * factor if value >= 0 else -1), synonym
    return key.default, None


def topic_default_text(name: str, node: Mapping[str, ConfigValue]) -> str:
    text = show_value(topic_default(name, node)[0])
    assert text is not None, "every topic key has a default"
    return text
