"""Every key against what Kafka 4.4's own definitions say: type, default, update mode or broker's key, limits.

The tables are read from Kafka's source (`.define(…)` of its configuration classes), not from ours. Limits: `>=1`,
`0..1`, `-` none, `=` a check of another kind, which has tests of its own.
"""

import pytest
from tests.rows import each

from strandline.metadata.configs.config_key import ConfigKey, show_value
from strandline.metadata.configs.dynamic_configs import update_mode
from strandline.metadata.configs.group_configs import GROUP_CONFIGS
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.metadata.configs.topic_configs import TOPIC_CONFIGS

NODES = """
process.roles LIST required read-only =
node.id INT required read-only >=0
broker.rack STRING - read-only -
listeners LIST PLAINTEXT://:9092 per-broker =
advertised.listeners LIST - read-only =
controller.listener.names LIST required read-only =
inter.broker.listener.name STRING - read-only -
controller.quorum.voters LIST - read-only -
controller.quorum.election.timeout.ms INT 1000 read-only >=0
controller.quorum.fetch.timeout.ms INT 2000 read-only >=0
controller.quorum.election.backoff.max.ms INT 1000 read-only >=0
controller.quorum.append.linger.ms INT 25 read-only >=0
controller.quorum.request.timeout.ms INT 2000 read-only >=0
controller.quorum.retry.backoff.ms INT 20 read-only >=0
controller.quorum.fetch.max.bytes INT 1048576 read-only >=1
controller.quorum.fetch.snapshot.max.bytes INT 1048576 read-only >=1
initial.broker.registration.timeout.ms INT 60000 read-only -
broker.heartbeat.interval.ms INT 2000 read-only -
broker.session.timeout.ms INT 9000 read-only -
controlled.shutdown.enable BOOLEAN true read-only -
request.timeout.ms INT 30000 read-only -
controller.socket.timeout.ms INT 30000 read-only -
authorizer.class.name STRING - read-only =
log.dir LIST /tmp/kafka-logs read-only =
log.dirs LIST - read-only =
cordoned.log.dirs LIST - per-broker =
log.dir.failure.timeout.ms LONG 30000 read-only >=1
metadata.log.dir STRING - read-only -
metadata.log.segment.bytes INT 1073741824 read-only >=8388608
metadata.log.segment.ms LONG 604800000 read-only -
metadata.log.max.record.bytes.between.snapshots LONG 20971520 read-only >=1
metadata.log.max.snapshot.interval.ms LONG 3600000 read-only >=0
metadata.max.retention.bytes LONG 104857600 read-only -
metadata.max.retention.ms LONG 604800000 read-only -
metadata.max.idle.interval.ms INT 500 read-only >=0
num.partitions INT 1 read-only >=1
default.replication.factor INT 1 read-only -
min.insync.replicas INT 1 cluster-wide >=1
auto.create.topics.enable BOOLEAN true read-only -
delete.topic.enable BOOLEAN true read-only -
auto.leader.rebalance.enable BOOLEAN true read-only -
leader.imbalance.check.interval.seconds LONG 300 read-only >=1
unclean.leader.election.enable BOOLEAN false cluster-wide -
unclean.leader.election.interval.ms LONG 300000 read-only >=1
compression.type STRING producer cluster-wide =
compression.gzip.level INT -1 cluster-wide =
compression.lz4.level INT 9 cluster-wide =
compression.zstd.level INT 3 cluster-wide =
log.cleanup.policy LIST delete cluster-wide =
log.segment.bytes INT 1073741824 cluster-wide >=1048576
log.roll.ms LONG - cluster-wide -
log.roll.hours INT 168 read-only >=1
log.roll.jitter.ms LONG - cluster-wide -
log.roll.jitter.hours INT 0 read-only >=0
log.retention.ms LONG - cluster-wide -
log.retention.minutes INT - read-only -
log.retention.hours INT 168 read-only -
log.retention.bytes LONG -1 cluster-wide -
log.local.retention.ms LONG -2 cluster-wide >=-2
log.local.retention.bytes LONG -2 cluster-wide >=-2
log.retention.check.interval.ms LONG 300000 read-only >=1
log.index.size.max.bytes INT 10485760 cluster-wide >=4
log.index.interval.bytes INT 4096 cluster-wide >=0
log.flush.interval.messages LONG 9223372036854775807 cluster-wide >=1
log.flush.interval.ms LONG - cluster-wide -
log.flush.scheduler.interval.ms LONG 9223372036854775807 read-only -
log.flush.offset.checkpoint.interval.ms INT 60000 read-only >=0
log.flush.start.offset.checkpoint.interval.ms INT 60000 read-only >=0
log.preallocate BOOLEAN false cluster-wide -
producer.id.expiration.ms INT 86400000 cluster-wide >=1
log.segment.delete.delay.ms LONG 60000 cluster-wide >=0
log.message.timestamp.type STRING CreateTime cluster-wide =
log.message.timestamp.before.max.ms LONG 9223372036854775807 cluster-wide >=0
log.message.timestamp.after.max.ms LONG 3600000 cluster-wide >=0
log.cleaner.enable BOOLEAN true read-only -
log.cleaner.backoff.ms LONG 15000 cluster-wide >=0
log.cleaner.delete.retention.ms LONG 86400000 cluster-wide >=0
log.cleaner.min.cleanable.ratio DOUBLE 0.5 cluster-wide 0..1
log.cleaner.min.compaction.lag.ms LONG 0 cluster-wide >=0
log.cleaner.max.compaction.lag.ms LONG 9223372036854775807 cluster-wide >=1
message.max.bytes INT 1048588 cluster-wide >=0
replica.lag.time.max.ms LONG 30000 read-only -
replica.socket.timeout.ms INT 30000 read-only -
replica.fetch.max.bytes INT 1048576 read-only >=0
replica.fetch.wait.max.ms INT 500 read-only -
replica.fetch.backoff.ms INT 1000 read-only >=0
replica.fetch.min.bytes INT 1 read-only -
replica.fetch.response.max.bytes INT 10485760 read-only >=0
replica.high.watermark.checkpoint.interval.ms LONG 5000 read-only -
replica.selector.class STRING - read-only =
leader.replication.throttled.rate LONG 9223372036854775807 cluster-wide >=0
follower.replication.throttled.rate LONG 9223372036854775807 cluster-wide >=0
replica.alter.log.dirs.io.max.bytes.per.second LONG 9223372036854775807 cluster-wide >=0
replication.quota.window.num INT 11 read-only >=1
replication.quota.window.size.seconds INT 1 read-only >=1
alter.log.dirs.replication.quota.window.num INT 11 read-only >=1
alter.log.dirs.replication.quota.window.size.seconds INT 1 read-only >=1
quota.window.num INT 11 read-only >=1
quota.window.size.seconds INT 1 read-only >=1
controller.quota.window.num INT 11 read-only >=1
controller.quota.window.size.seconds INT 1 read-only >=1
telemetry.max.bytes INT 1048576 read-only >=1
fetch.max.bytes INT 57671680 read-only >=1024
max.incremental.fetch.session.cache.slots INT 1000 read-only >=0
max.request.partition.size.limit INT 2000 read-only >=1
group.min.session.timeout.ms INT 6000 read-only -
group.max.session.timeout.ms INT 1800000 read-only -
group.initial.rebalance.delay.ms INT 3000 read-only -
group.max.size INT 2147483647 read-only >=1
group.coordinator.rebalance.protocols LIST classic,consumer read-only =
group.consumer.session.timeout.ms INT 45000 read-only >=1
group.consumer.min.session.timeout.ms INT 45000 read-only >=1
group.consumer.max.session.timeout.ms INT 60000 read-only >=1
group.consumer.heartbeat.interval.ms INT 5000 read-only >=1
group.consumer.min.heartbeat.interval.ms INT 5000 read-only >=1
group.consumer.max.heartbeat.interval.ms INT 15000 read-only >=1
group.consumer.max.size INT 2147483647 read-only >=1
group.consumer.assignors LIST uniform,range read-only =
group.consumer.migration.policy STRING bidirectional read-only =
offset.metadata.max.bytes INT 4096 read-only -
offsets.commit.timeout.ms INT 5000 read-only >=1
offsets.retention.minutes INT 10080 read-only >=1
offsets.retention.check.interval.ms LONG 600000 read-only >=1
offsets.topic.num.partitions INT 50 read-only >=1
offsets.topic.replication.factor SHORT 3 read-only >=1
offsets.topic.segment.bytes INT 104857600 read-only >=1
transactional.id.expiration.ms INT 604800000 read-only >=1
transaction.max.timeout.ms INT 900000 read-only >=1
transaction.abort.timed.out.transaction.cleanup.interval.ms INT 10000 read-only >=1
transaction.remove.expired.transaction.cleanup.interval.ms INT 3600000 read-only >=1
transaction.two.phase.commit.enable BOOLEAN false read-only -
transaction.partition.verification.enable BOOLEAN true cluster-wide -
add.partitions.to.txn.retry.backoff.ms INT 20 read-only >=1
add.partitions.to.txn.retry.backoff.max.ms INT 100 read-only >=0
transaction.state.log.num.partitions INT 50 read-only >=1
transaction.state.log.replication.factor SHORT 3 read-only >=1
transaction.state.log.min.isr INT 2 read-only >=1
transaction.state.log.segment.bytes INT 104857600 read-only >=1
socket.send.buffer.bytes INT 102400 read-only -
socket.receive.buffer.bytes INT 102400 read-only -
socket.request.max.bytes INT 104857600 read-only >=1
socket.listen.backlog.size INT 50 read-only >=1
connections.max.idle.ms LONG 600000 read-only -
max.connections INT 2147483647 cluster-wide >=0
max.connections.per.ip INT 2147483647 cluster-wide >=0
max.connections.per.ip.overrides STRING - cluster-wide =
max.connection.creation.rate INT 2147483647 cluster-wide >=0
queued.max.request.bytes LONG -1 read-only -
"""

TOPICS = """
cleanup.policy LIST delete log.cleanup.policy =
compression.gzip.level INT -1 compression.gzip.level =
compression.lz4.level INT 9 compression.lz4.level =
compression.type STRING producer compression.type =
compression.zstd.level INT 3 compression.zstd.level =
delete.retention.ms LONG 86400000 log.cleaner.delete.retention.ms >=0
file.delete.delay.ms LONG 60000 log.segment.delete.delay.ms >=0
flush.messages LONG 9223372036854775807 log.flush.interval.messages >=1
flush.ms LONG 9223372036854775807 log.flush.interval.ms >=0
follower.replication.throttled.replicas LIST - - =
index.interval.bytes INT 4096 log.index.interval.bytes >=0
internal.segment.bytes INT - - =
leader.replication.throttled.replicas LIST - - =
local.retention.bytes LONG -2 log.local.retention.bytes >=-2
local.retention.ms LONG -2 log.local.retention.ms >=-2
max.compaction.lag.ms LONG 9223372036854775807 log.cleaner.max.compaction.lag.ms >=1
max.message.bytes INT 1048588 message.max.bytes >=0
message.timestamp.after.max.ms LONG 3600000 log.message.timestamp.after.max.ms >=0
message.timestamp.before.max.ms LONG 9223372036854775807 log.message.timestamp.before.max.ms >=0
message.timestamp.type STRING CreateTime log.message.timestamp.type =
min.cleanable.dirty.ratio DOUBLE 0.5 log.cleaner.min.cleanable.ratio 0..1
min.compaction.lag.ms LONG 0 log.cleaner.min.compaction.lag.ms >=0
min.insync.replicas INT 1 min.insync.replicas >=1
preallocate BOOLEAN false log.preallocate -
remote.storage.enable BOOLEAN false - -
retention.bytes LONG -1 log.retention.bytes -
retention.ms LONG 604800000 log.retention.ms >=-1
segment.bytes INT 1073741824 log.segment.bytes >=1048576
segment.index.bytes INT 10485760 log.index.size.max.bytes >=4
segment.jitter.ms LONG 0 log.roll.jitter.ms >=0
segment.ms LONG 604800000 log.roll.ms >=1
unclean.leader.election.enable BOOLEAN false unclean.leader.election.enable -
"""

# Kafka's default of both types is JKS, which only Java reads; it checks the values of the protocols when it uses them.
TLS = """
security.inter.broker.protocol STRING PLAINTEXT read-only =
ssl.keystore.type STRING PEM per-broker =
ssl.keystore.location STRING - per-broker -
ssl.keystore.password PASSWORD - per-broker -
ssl.key.password PASSWORD - per-broker -
ssl.keystore.certificate.chain PASSWORD - per-broker -
ssl.keystore.key PASSWORD - per-broker -
ssl.truststore.type STRING PEM per-broker =
ssl.truststore.location STRING - per-broker -
ssl.truststore.password PASSWORD - per-broker -
ssl.truststore.certificates PASSWORD - per-broker -
ssl.client.auth STRING none read-only =
ssl.enabled.protocols LIST TLSv1.2,TLSv1.3 read-only =
ssl.protocol STRING TLSv1.3 read-only =
ssl.cipher.suites LIST - read-only -
ssl.endpoint.identification.algorithm STRING https read-only =
ssl.principal.mapping.rules STRING DEFAULT read-only -
"""

# Kafka's default of mechanisms is GSSAPI; changes need a restart here.
SASL = """
sasl.enabled.mechanisms LIST - read-only -
sasl.jaas.config PASSWORD - read-only -
sasl.mechanism.inter.broker.protocol STRING - read-only -
sasl.mechanism.controller.protocol STRING - read-only -
sasl.server.max.receive.size INT 524288 read-only >=1
sasl.server.callback.handler.class STRING - read-only -
connections.max.reauth.ms LONG 0 read-only -
connection.failed.authentication.delay.ms INT 100 read-only >=0
sasl.oauthbearer.jwks.endpoint.url STRING - read-only -
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG 3600000 read-only -
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG 100 read-only -
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG 10000 read-only -
sasl.oauthbearer.expected.audience LIST - read-only -
sasl.oauthbearer.expected.issuer STRING - read-only -
sasl.oauthbearer.scope.claim.name STRING scope read-only -
sasl.oauthbearer.sub.claim.name STRING sub read-only -
sasl.oauthbearer.clock.skew.seconds INT 30 read-only -
"""

# KIP-966 proposes them; Kafka has not built them yet.
PROPOSED = """
eligible.leader.replicas.enabled BOOLEAN true read-only -
unclean.recovery.strategy STRING Balanced cluster-wide =
unclean.recovery.manager.enabled BOOLEAN false read-only -
unclean.recovery.timeout.ms LONG 300000 read-only =
"""
OF_THE_CHAPTER = (
    "replica.lag.time.max.ms",
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "replica.high.watermark.checkpoint.interval.ms",
    "replica.fetch.wait.max.ms",
    "replica.fetch.max.bytes",
    "replica.fetch.min.bytes",
    "replica.fetch.backoff.ms",
)
# Kafka takes values that it cannot work with, such as a negative lag time.
STRICTER = {
    "broker.heartbeat.interval.ms": 1,
    "broker.session.timeout.ms": 1,
    "default.replication.factor": 1,
    "group.initial.rebalance.delay.ms": 0,
    "group.max.session.timeout.ms": 1,
    "group.min.session.timeout.ms": 1,
    "controller.socket.timeout.ms": 1,
    "log.flush.scheduler.interval.ms": 1,
    "log.retention.ms": -1,
    "log.roll.jitter.ms": 0,
    "log.roll.ms": 1,
    "offset.metadata.max.bytes": 0,
    "replica.fetch.wait.max.ms": 0,
    "replica.high.watermark.checkpoint.interval.ms": 1,
    "replica.lag.time.max.ms": 1,
    "replica.socket.timeout.ms": 1,
    "request.timeout.ms": 1,
    "socket.receive.buffer.bytes": -1,
    "socket.send.buffer.bytes": -1,
}
# No listener is added while a broker runs (docs/configs.md says so).
READ_ONLY_HERE = frozenset(("listeners",))
# Keys that Kafka leaves to the authorizer.
OF_THE_AUTHORIZER = ("super.users", "allow.everyone.if.no.acl.found")
# The scrubber is ours, and so is the secret of nodes.
FURTHER = (
    *OF_THE_AUTHORIZER,
    "cluster.secret.",
    "listener.security.protocol.map",
    "strandline.",
    "log.cleaner.",
    "log.scrub.",
)
Row = tuple[str, str, str, str, str]


def rows(table: str) -> list[Row]:
    found = [tuple(line.split(" ")) for line in table.strip().splitlines()]
    assert all(len(row) == 5 for row in found)
    return found  # type: ignore[return-value]


def names(row: object) -> str | None:
    return row[0] if isinstance(row, tuple) else None


def check_limits(key: ConfigKey, limits: str) -> None:
    if limits == "=":
        assert key.check is not None
    elif limits == "-":
        assert (key.check is None) == (key.name not in STRICTER)
    low, high = limits.removeprefix(">="), None
    if ".." in limits:
        low, high = limits.split("..")
    elif not limits.startswith(">="):
        if key.name not in STRICTER:
            return
        low = str(STRICTER[key.name])
    assert key.why_invalid(low) is None
    below, wrong = str(int(low) - 1), f"for configuration {key.name}: Value must be at least {low}"
    assert key.why_invalid(below) == f"Invalid value {below} {wrong}"
    if high is not None:
        above, wrong = str(int(high) + 1), f"for configuration {key.name}: Value must be no more than {high}"
        assert key.why_invalid(above) == f"Invalid value {above} {wrong}"


@each("row", rows(NODES) + rows(TLS) + rows(SASL) + rows(PROPOSED), ids=names)
def test_a_nodes_key_is_kafkas(row: Row) -> None:
    name, kind, default, mode, limits = row
    key = NODE_CONFIGS[name]
    assert (key.name, key.type) == (name, kind)
    assert update_mode(name) == ("read-only" if name in READ_ONLY_HERE else mode)
    assert default == ("required" if key.required else show_value(key.default) or "-")
    check_limits(key, limits)


GROUPS = """
consumer.heartbeat.interval.ms INT 5000 group.consumer.heartbeat.interval.ms >=1
consumer.session.timeout.ms INT 45000 group.consumer.session.timeout.ms >=1
"""


@each("row", rows(GROUPS), ids=names)
def test_a_groups_key_is_kafkas(row: Row) -> None:
    name, kind, default, of_broker, limits = row
    key = GROUP_CONFIGS[name]
    assert (key.name, key.type, show_value(key.default), key.synonyms) == (name, kind, default, ((of_broker, 1),))
    check_limits(key, limits)


@each("row", rows(TOPICS), ids=names)
def test_a_topics_key_is_kafkas(row: Row) -> None:
    name, kind, default, of_broker, limits = row
    key = TOPIC_CONFIGS[name]
    assert (key.name, key.type) == (name, kind)
    assert default == (show_value(key.default) or "-")
    assert of_broker == (key.synonyms[0][0] if key.synonyms else "-")
    check_limits(key, limits)
    if of_broker != "-":
        assert NODE_CONFIGS[of_broker].type == kind
        assert update_mode(of_broker) == "cluster-wide"


def test_no_key_is_made_up() -> None:
    known = {row[0] for row in rows(NODES) + rows(TLS) + rows(SASL) + rows(PROPOSED)}
    assert [name for name in NODE_CONFIGS if name not in known and not name.startswith(FURTHER)] == []
    assert set(TOPIC_CONFIGS) == {row[0] for row in rows(TOPICS)} | {"unclean.recovery.strategy"}
    assert set(GROUP_CONFIGS) == {row[0] for row in rows(GROUPS)}
    assert known.issuperset(OF_THE_CHAPTER)


@pytest.mark.parametrize("table", [NODE_CONFIGS, TOPIC_CONFIGS], ids=["nodes", "topics"])
def test_what_is_no_value_of_the_type_is_refused_in_kafkas_words(table: dict[str, ConfigKey]) -> None:
    for key in table.values():
        message = f"Invalid value x for configuration {key.name}: "
        if key.type == "BOOLEAN":
            assert key.why_invalid("x") == message + "Expected value to be either true or false"
        elif key.type not in ("STRING", "LIST", "PASSWORD"):
            assert key.why_invalid("x") == f"{message}Not a number of type {key.type}"
