"""Every key of a node's configuration: Kafka's name, type, default and limits, one row each.

DescribeConfigs of a broker lists this table. Keys that Kafka has and that mean nothing here (thread pools, …) are
left out: a file may have them, and they are reported as unknown.
"""

import sys

from strandline.base.answer_memory import ANSWERS_BYTES_MAX
from strandline.metadata.configs.config_key import (
    BOOLEAN,
    DOUBLE,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LONG_MAX,
    SHORT,
    STRING,
    Check,
    ConfigKey,
    ConfigValue,
    OfList,
    at_least,
    between,
    distinct,
    each_of,
    one_of,
)
from strandline.metadata.configs.sasl_configs import SASL_ROWS
from strandline.metadata.configs.tls_configs import TLS_ROWS
from strandline.metadata.configs.topic_configs import (
    COMPRESSION_TYPES,
    DAY,
    HOUR,
    TOPIC_CONFIGS,
    UNCLEAN_RECOVERY_STRATEGIES,
)
from strandline.metadata.security.acls import principals_in

MIB = 1024 * 1024
ALL_DIRECTORIES = "*"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
METRICS_LISTENER = "strandline.metrics.listener"
REPLICA_SELECTORS = tuple(
    f"org.apache.kafka.common.replica.{name}" for name in ("LeaderSelector", "RackAwareReplicaSelector")
)

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def host_and_port(value: ConfigValue) -> str | None:
    assert value is None or isinstance(value, str)
    if value is None:
        return None
    _, colon, port = value.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536
    return None if colon and is_port else "expected host:port"


def principals(value: ConfigValue) -> str | None:
    assert isinstance(value, str)
    wrong = [one for one in principals_in(value) if ":" not in one]
    return f"expected a string in format principalType:principalName but got {wrong[0]}" if wrong else None


def numbers_of_addresses(value: ConfigValue) -> str | None:
    """ "address:number" entries, separated by commas."""
    assert isinstance(value, str)
    for entry in filter(None, value.split(",")):
        address, colon, number = entry.rpartition(":")
        if not (colon and address.strip() and number.strip().isascii() and number.strip().isdigit()):
            return f"expected address:number, not {entry}"
    return None


def distinct_or_all(value: ConfigValue) -> str | OfList | None:
    if isinstance(value, tuple) and len(value) > 1 and ALL_DIRECTORIES in value:
        return f"when it is {ALL_DIRECTORIES}, it must not contain other values"
    return each_of()(value)


def same_as(topic_key: str) -> Check | None:
    """The limits of a topic's key, for the node's key that is its default."""
    return TOPIC_CONFIGS[topic_key].check


ROWS = (
    # The node, its listeners and its quorum
    ConfigKey("process.roles", LIST, (), each_of("broker", "controller", may_be_empty=False), required=True),
    ConfigKey("node.id", INT, -1, at_least(0), required=True),
    ConfigKey("broker.rack", STRING),
    ConfigKey("listeners", LIST, ("PLAINTEXT://:9092",), distinct),
    ConfigKey("advertised.listeners", LIST, None, distinct),
    ConfigKey("controller.listener.names", LIST, (), distinct, required=True),
    ConfigKey("inter.broker.listener.name", STRING),
    ConfigKey("cluster.secret.file", STRING),
    ConfigKey("cluster.secret.required", BOOLEAN, True),
    ConfigKey("listener.security.protocol.map", STRING, ",".join(f"{name}:{name}" for name in PROTOCOLS)),
    ConfigKey("security.inter.broker.protocol", STRING, "PLAINTEXT", one_of(*PROTOCOLS)),
    ConfigKey("controller.quorum.voters", LIST, ()),
    ConfigKey("controller.quorum.election.timeout.ms", INT, 1000, at_least(0)),
    ConfigKey("controller.quorum.fetch.timeout.ms", INT, 2000, at_least(0)),
    ConfigKey("controller.quorum.election.backoff.max.ms", INT, 1000, at_least(0)),
    ConfigKey("controller.quorum.append.linger.ms", INT, 25, at_least(0)),
    ConfigKey("controller.quorum.request.timeout.ms", INT, 2000, at_least(0)),
    ConfigKey("controller.quorum.retry.backoff.ms", INT, 20, at_least(0)),
    ConfigKey("controller.quorum.fetch.max.bytes", INT, MIB, at_least(1)),
    ConfigKey("controller.quorum.fetch.snapshot.max.bytes", INT, MIB, at_least(1)),
    ConfigKey("initial.broker.registration.timeout.ms", INT, 60_000),
    ConfigKey("broker.heartbeat.interval.ms", INT, 2000, at_least(1)),
    ConfigKey("broker.session.timeout.ms", INT, 9000, at_least(1)),
    ConfigKey("controlled.shutdown.enable", BOOLEAN, True),
    ConfigKey("request.timeout.ms", INT, 30_000, at_least(1)),
    ConfigKey("controller.socket.timeout.ms", INT, 30_000, at_least(1)),
    # Permissions
    ConfigKey("authorizer.class.name", STRING, "", one_of("", STANDARD_AUTHORIZER)),
    ConfigKey("super.users", STRING, "", principals),
    ConfigKey("allow.everyone.if.no.acl.found", BOOLEAN, False),
    # Where logs and metadata lie
    ConfigKey("log.dir", LIST, ("/tmp/kafka-logs",), distinct),
    ConfigKey("log.dirs", LIST, None, distinct),
    ConfigKey("cordoned.log.dirs", LIST, (), distinct_or_all),
    ConfigKey("log.dir.failure.timeout.ms", LONG, 30_000, at_least(1)),
    ConfigKey("metadata.log.dir", STRING),
    ConfigKey("metadata.log.segment.bytes", INT, 1 << 30, at_least(8 * MIB)),
    ConfigKey("metadata.log.segment.ms", LONG, 7 * DAY),
    ConfigKey("metadata.log.max.record.bytes.between.snapshots", LONG, 20 * MIB, at_least(1)),
    ConfigKey("metadata.log.max.snapshot.interval.ms", LONG, HOUR, at_least(0)),
    ConfigKey("metadata.max.retention.bytes", LONG, 100 * MIB),
    ConfigKey("metadata.max.retention.ms", LONG, 7 * DAY),
    ConfigKey("metadata.max.idle.interval.ms", INT, 500, at_least(0)),
    # Topics
    ConfigKey("num.partitions", INT, 1, at_least(1)),
    ConfigKey("default.replication.factor", INT, 1, at_least(1)),
    ConfigKey("min.insync.replicas", INT, 1, at_least(1)),
    ConfigKey("auto.create.topics.enable", BOOLEAN, True),
    ConfigKey("delete.topic.enable", BOOLEAN, True),
    ConfigKey("auto.leader.rebalance.enable", BOOLEAN, True),
    ConfigKey("leader.imbalance.check.interval.seconds", LONG, 300, at_least(1)),
    ConfigKey("unclean.leader.election.enable", BOOLEAN, False),
    ConfigKey("unclean.leader.election.interval.ms", LONG, 300_000, at_least(1)),
    # KIP-966
    ConfigKey("eligible.leader.replicas.enabled", BOOLEAN, True),  # the KIP's false, until 4.1 made it the default
    ConfigKey("unclean.recovery.strategy", STRING, "Balanced", one_of(*UNCLEAN_RECOVERY_STRATEGIES)),
    ConfigKey("unclean.recovery.manager.enabled", BOOLEAN, False),
    ConfigKey("unclean.recovery.timeout.ms", LONG, 300_000, at_least(0)),
    # Logs
    ConfigKey("compression.type", STRING, "producer", one_of(*COMPRESSION_TYPES)),
    ConfigKey("compression.gzip.level", INT, -1, same_as("compression.gzip.level")),
    ConfigKey("compression.lz4.level", INT, 9, same_as("compression.lz4.level")),
    ConfigKey("compression.zstd.level", INT, 3, same_as("compression.zstd.level")),
    ConfigKey("log.cleanup.policy", LIST, ("delete",), each_of("compact", "delete")),
    ConfigKey("log.segment.bytes", INT, 1 << 30, between(MIB, INT_MAX)),
    ConfigKey("log.roll.ms", LONG, None, at_least(1)),
    ConfigKey("log.roll.hours", INT, 168, at_least(1)),
    ConfigKey("log.roll.jitter.ms", LONG, None, at_least(0)),
    ConfigKey("log.roll.jitter.hours", INT, 0, at_least(0)),
    ConfigKey("log.retention.ms", LONG, None, at_least(-1)),
    ConfigKey("log.retention.minutes", INT),
    ConfigKey("log.retention.hours", INT, 168),
    ConfigKey("log.retention.bytes", LONG, -1),
    ConfigKey("log.local.retention.ms", LONG, -2, at_least(-2)),
    ConfigKey("log.local.retention.bytes", LONG, -2, at_least(-2)),
    ConfigKey("log.retention.check.interval.ms", LONG, 300_000, at_least(1)),
    ConfigKey("log.index.size.max.bytes", INT, 10 * MIB, at_least(4)),
    ConfigKey("log.index.interval.bytes", INT, 4096, at_least(0)),
    ConfigKey("log.flush.interval.messages", LONG, LONG_MAX, at_least(1)),
    ConfigKey("log.flush.interval.ms", LONG),
    ConfigKey("log.flush.scheduler.interval.ms", LONG, LONG_MAX, at_least(1)),
    ConfigKey("log.flush.offset.checkpoint.interval.ms", INT, 60_000, at_least(0)),
    ConfigKey("log.flush.start.offset.checkpoint.interval.ms", INT, 60_000, at_least(0)),
    ConfigKey("log.preallocate", BOOLEAN, False),
    ConfigKey("producer.id.expiration.ms", INT, DAY, at_least(1)),
    ConfigKey("log.segment.delete.delay.ms", LONG, 60_000, at_least(0)),
    ConfigKey("log.message.timestamp.type", STRING, "CreateTime", one_of("CreateTime", "LogAppendTime")),
    ConfigKey("log.message.timestamp.before.max.ms", LONG, LONG_MAX, at_least(0)),
    ConfigKey("log.message.timestamp.after.max.ms", LONG, HOUR, at_least(0)),
    ConfigKey("log.scrub.max.bytes.per.second", LONG, MIB, at_least(0)),
    ConfigKey("log.scrub.interval.ms", LONG, DAY, at_least(1)),
    ConfigKey("log.cleaner.enable", BOOLEAN, True),
    ConfigKey("log.cleaner.backoff.ms", LONG, 15_000, at_least(0)),
    ConfigKey("log.cleaner.dedupe.buffer.size", LONG, 128 * MIB),
    ConfigKey("log.cleaner.io.max.bytes.per.second", DOUBLE, sys.float_info.max),
    ConfigKey("log.cleaner.delete.retention.ms", LONG, DAY, at_least(0)),
    ConfigKey("log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, between(0, 1)),
    ConfigKey("log.cleaner.min.compaction.lag.ms", LONG, 0, at_least(0)),
    ConfigKey("log.cleaner.max.compaction.lag.ms", LONG, LONG_MAX, at_least(1)),
    ConfigKey("message.max.bytes", INT, MIB + 12, at_least(0)),
    # Replication and fetching
    ConfigKey("replica.lag.time.max.ms", LONG, 30_000, at_least(1)),
    ConfigKey("replica.socket.timeout.ms", INT, 30_000, at_least(1)),
    ConfigKey("replica.fetch.max.bytes", INT, MIB, at_least(0)),
    ConfigKey("replica.fetch.wait.max.ms", INT, 500, at_least(0)),
    ConfigKey("replica.fetch.backoff.ms", INT, 1000, at_least(0)),
    ConfigKey("replica.fetch.min.bytes", INT, 1),
    ConfigKey("replica.fetch.response.max.bytes", INT, 10 * MIB, at_least(0)),
    ConfigKey("replica.high.watermark.checkpoint.interval.ms", LONG, 5000, at_least(1)),
    ConfigKey("replica.selector.class", STRING, None, one_of(*REPLICA_SELECTORS)),
    ConfigKey("leader.replication.throttled.rate", LONG, LONG_MAX, at_least(0)),
    ConfigKey("follower.replication.throttled.rate", LONG, LONG_MAX, at_least(0)),
    ConfigKey("replica.alter.log.dirs.io.max.bytes.per.second", LONG, LONG_MAX, at_least(0)),
    ConfigKey("replication.quota.window.num", INT, 11, at_least(1)),
    ConfigKey("replication.quota.window.size.seconds", INT, 1, at_least(1)),
    ConfigKey("alter.log.dirs.replication.quota.window.num", INT, 11, at_least(1)),
    ConfigKey("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, at_least(1)),
    ConfigKey("telemetry.max.bytes", INT, MIB, at_least(1)),
    ConfigKey("quota.window.num", INT, 11, at_least(1)),
    ConfigKey("quota.window.size.seconds", INT, 1, at_least(1)),
    ConfigKey("controller.quota.window.num", INT, 11, at_least(1)),
    ConfigKey("controller.quota.window.size.seconds", INT, 1, at_least(1)),
    ConfigKey("fetch.max.bytes", INT, 55 * MIB, at_least(1024)),
    ConfigKey("max.incremental.fetch.session.cache.slots", INT, 1000, at_least(0)),
    ConfigKey("max.request.partition.size.limit", INT, 2000, at_least(1)),
    # Groups and their offsets
    ConfigKey("group.min.session.timeout.ms", INT, 6000, at_least(1)),
    ConfigKey("group.max.session.timeout.ms", INT, 1_800_000, at_least(1)),
    ConfigKey("group.initial.rebalance.delay.ms", INT, 3000, at_least(0)),
    ConfigKey("group.max.size", INT, INT_MAX, at_least(1)),
    ConfigKey("group.coordinator.rebalance.protocols", LIST, ("classic", "consumer"), each_of("classic", "consumer")),
    ConfigKey("group.consumer.session.timeout.ms", INT, 45_000, at_least(1)),
    ConfigKey("group.consumer.min.session.timeout.ms", INT, 45_000, at_least(1)),
    ConfigKey("group.consumer.max.session.timeout.ms", INT, 60_000, at_least(1)),
    ConfigKey("group.consumer.heartbeat.interval.ms", INT, 5000, at_least(1)),
    ConfigKey("group.consumer.min.heartbeat.interval.ms", INT, 5000, at_least(1)),
    ConfigKey("group.consumer.max.heartbeat.interval.ms", INT, 15_000, at_least(1)),
    ConfigKey("group.consumer.max.size", INT, INT_MAX, at_least(1)),
    ConfigKey("group.consumer.assignors", LIST, ("uniform", "range"), each_of("uniform", "range", may_be_empty=False)),
    ConfigKey(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        one_of("bidirectional", "upgrade", "downgrade", "disabled"),
    ),
    ConfigKey("offset.metadata.max.bytes", INT, 4096, at_least(0)),
    ConfigKey("offsets.commit.timeout.ms", INT, 5000, at_least(1)),
    ConfigKey("offsets.retention.minutes", INT, 7 * 24 * 60, at_least(1)),
    ConfigKey("offsets.retention.check.interval.ms", LONG, 600_000, at_least(1)),
    ConfigKey("offsets.topic.num.partitions", INT, 50, at_least(1)),
    ConfigKey("offsets.topic.replication.factor", SHORT, 3, at_least(1)),
    ConfigKey("offsets.topic.segment.bytes", INT, 100 * MIB, at_least(1)),
    # Transactions
    ConfigKey("transactional.id.expiration.ms", INT, 7 * DAY, at_least(1)),
    ConfigKey("transaction.max.timeout.ms", INT, 900_000, at_least(1)),
    ConfigKey("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, at_least(1)),
    ConfigKey("transaction.remove.expired.transaction.cleanup.interval.ms", INT, HOUR, at_least(1)),
    ConfigKey("transaction.two.phase.commit.enable", BOOLEAN, False),
    ConfigKey("transaction.partition.verification.enable", BOOLEAN, True),
    ConfigKey("add.partitions.to.txn.retry.backoff.ms", INT, 20, at_least(1)),
    ConfigKey("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, at_least(0)),
    ConfigKey("transaction.state.log.num.partitions", INT, 50, at_least(1)),
    ConfigKey("transaction.state.log.replication.factor", SHORT, 3, at_least(1)),
    ConfigKey("transaction.state.log.min.isr", INT, 2, at_least(1)),
    ConfigKey("transaction.state.log.segment.bytes", INT, 100 * MIB, at_least(1)),
    # Sockets
    ConfigKey("socket.send.buffer.bytes", INT, 100 * 1024, at_least(-1)),
    ConfigKey("socket.receive.buffer.bytes", INT, 100 * 1024, at_least(-1)),
    ConfigKey("socket.request.max.bytes", INT, 100 * MIB, at_least(1)),
    ConfigKey("socket.listen.backlog.size", INT, 50, at_least(1)),
    ConfigKey("connections.max.idle.ms", LONG, 600_000),
    # Limits against clients that take too much (KIP-308, KIP-402, KIP-612)
    ConfigKey("max.connections", INT, INT_MAX, at_least(0)),
    ConfigKey("max.connections.per.ip", INT, INT_MAX, at_least(0)),
    ConfigKey("max.connections.per.ip.overrides", STRING, "", numbers_of_addresses),
    ConfigKey("max.connection.creation.rate", INT, INT_MAX, at_least(0)),
    ConfigKey("queued.max.request.bytes", LONG, -1),
    # Not Kafka's, whose answers lie in files until the client takes them.
    ConfigKey("strandline.queued.response.max.bytes", LONG, ANSWERS_BYTES_MAX, at_least(4 * MIB)),
    ConfigKey("strandline.connection.setup.timeout.ms", LONG, 30_000),
    *TLS_ROWS,
    *SASL_ROWS,
    # Not Kafka's: where metrics are served, as host:port. An empty host is 127.0.0.1, port 0 any free one.
    ConfigKey(METRICS_LISTENER, STRING, None, host_and_port),
)

NODE_CONFIGS: dict[str, ConfigKey] = {key.name: key for key in ROWS}
assert len(NODE_CONFIGS) == len(ROWS), "a key has one row"
assert NODE_CONFIGS.keys() >= {name for row in TOPIC_CONFIGS.values() for name, _ in row.synonyms}
