"""Which keys of a node's configuration may change while it runs, and for whom (KIP-226).

Kafka's update modes: a `read-only` key is what the file says until the next start; a `cluster-wide` key may be set for
all brokers at once (the resource without a name), and for one broker, whose own value goes before the cluster's; a
`per-broker` key only for one broker.

Invariants:
  - every dynamic key is a key of the node's configuration;
  - of what decides about committed records there is one value in a cluster, never one of a single broker (T1).
"""

from collections.abc import Mapping

from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.configs.listener_limits import listener_and_limit
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.metadata.configs.tls_configs import DYNAMIC_TLS_KEYS, listener_and_key
from strandline.metadata.configs.topic_configs import TOPIC_CONFIGS
from strandline.metadata.records import BROKER_RESOURCE, CLUSTER_DEFAULT

READ_ONLY, CLUSTER_WIDE, PER_BROKER = "read-only", "cluster-wide", "per-broker"

# The first synonym of a topic's key is its default and dynamic; the others are older units of it, and read-only.
TOPIC_DEFAULTS = {row.synonyms[0][0]: row.name for row in TOPIC_CONFIGS.values() if row.synonyms}
OTHERS = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "log.scrub.max.bytes.per.second",
    "log.scrub.interval.ms",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
    "producer.id.expiration.ms",
    "transaction.partition.verification.enable",
    "cordoned.log.dirs",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "max.connection.creation.rate",
)
DYNAMIC_NODE_KEYS = frozenset((*TOPIC_DEFAULTS, *OTHERS))
FOR_ONE_BROKER = frozenset(("cordoned.log.dirs",))
# Controller and leaders decide with these about the same records, so that all must have the same value.
ONE_FOR_ALL = frozenset(("min.insync.replicas", "unclean.leader.election.enable", "unclean.recovery.strategy"))

assert NODE_CONFIGS.keys() >= DYNAMIC_NODE_KEYS >= FOR_ONE_BROKER
assert FOR_ONE_BROKER.isdisjoint(ONE_FOR_ALL)
assert DYNAMIC_NODE_KEYS >= ONE_FOR_ALL, "a cluster can be given its value"

# Keys of which Kafka takes the first one that is set; each is shown with those after it.
SYNONYMS = tuple(tuple(name for name, _ in row.synonyms) for row in TOPIC_CONFIGS.values() if len(row.synonyms) > 1)


assert len({name for names in SYNONYMS for name in names}) == sum(map(len, SYNONYMS)), "a key stands in for one other"


def is_dynamic(name: str) -> bool:
    own = listener_and_key(name)
    if own is not None:
        return own[1] in DYNAMIC_TLS_KEYS
    return name in DYNAMIC_NODE_KEYS or listener_and_limit(name) is not None


def base_of(name: str) -> str:
    """The node's key that a listener's own setting stands for; else the key itself."""
    own = listener_and_key(name) or listener_and_limit(name)
    return name if own is None else own[1]


def is_for_one_broker(name: str) -> bool:
    """A broker has its own certificates, and its own cordoned directories."""
    return name in FOR_ONE_BROKER or listener_and_key(name) is not None


def update_mode(name: str) -> str:
    if name in FOR_ONE_BROKER or name in DYNAMIC_TLS_KEYS:  # those by the listener's name alone
        return PER_BROKER
    return CLUSTER_WIDE if name in DYNAMIC_NODE_KEYS else READ_ONLY


def synonyms_of(name: str) -> tuple[str, ...]:
    """The key and those that stand in for it, in the order in which they are asked."""
    for names in SYNONYMS:
        if name in names:
            return names
    return (name,)


def dynamic_value(configs: Mapping[tuple[int, str], Mapping[str, str]], broker: str, name: str) -> ConfigValue:
    """What a running broker was given, alone or with all others; None if its file counts."""
    for resource in ((BROKER_RESOURCE, broker), (BROKER_RESOURCE, CLUSTER_DEFAULT)):
        text = configs.get(resource, {}).get(name)
        if text is not None:
            return NODE_CONFIGS[base_of(name)].parse(text)
    return None


def why_invalid_for_broker(name: str, value: str) -> str | None:
    """Why may a broker not have this value? None means it may."""
    row = NODE_CONFIGS.get(base_of(name))
    return row.why_invalid(value) if row is not None else None


def why_not_together(setting: Mapping[str, ConfigValue]) -> str | None:
    """What is wrong between values of a topic that are each right. `setting` has all keys of the topic's table."""
    low, high = setting["min.compaction.lag.ms"], setting["max.compaction.lag.ms"]
    assert isinstance(low, int) and isinstance(high, int)
    if low > high:
        return f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
    if setting["remote.storage.enable"]:
        why = "Tiered Storage functionality is disabled in the broker."
        return f"{why} Topic cannot be configured with remote log storage."
    return None
