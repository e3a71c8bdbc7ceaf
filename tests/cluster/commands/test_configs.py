"""Configurations on a real cluster: every level takes effect at once, and clients see where values are from."""

import json
import uuid
import warnings
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)
from tests.cluster import commanding
from tests.cluster.driving import admin_of, quiet, until

from strandline.testing.local_cluster import LocalCluster

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kafka import KafkaAdminClient
    from kafka.admin import ConfigResource as OldResource
    from kafka.admin import ConfigResourceType as OldType

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]


def strandline(*arguments: str, status: int = 0) -> str:
    """What a command prints; or, if it is to fail, what it complains about."""
    done = commanding.strandline(*arguments)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def configs(cluster: LocalCluster, *arguments: str, status: int = 0) -> str:
    return strandline("configs", *arguments, "--bootstrap-server", cluster.bootstrap, status=status)


def described(cluster: LocalCluster, *arguments: str) -> dict[str, Any]:
    rows = json.loads(configs(cluster, "describe", "--json", *arguments))
    return {row["name"]: row for row in rows}


def topic_on(cluster: LocalCluster, node: int) -> str:
    """A new topic whose only replica is this node."""
    name = f"g-{uuid.uuid4().hex[:10]}"
    topic = NewTopic(name, 1, replica_assignment=[[node]])
    admin = admin_of(cluster)  # kept by name: it answers its futures only while it lives
    admin.create_topics([topic])[name].result(10)
    until(lambda: admin.list_topics(name, timeout=5).topics[name].partitions.get(0) is not None, 10)
    return name


def outcome(cluster: LocalCluster, topic: str, size: int) -> KafkaError | None:
    errors: list[KafkaError | None] = []
    producer = Producer(quiet(cluster.bootstrap, message_max_bytes=10_000_000))
    producer.produce(topic, b"x" * size, on_delivery=lambda error, message: errors.append(error))
    assert producer.flush(20) == 0
    return errors[0]


def is_too_large(cluster: LocalCluster, topic: str, size: int) -> bool:
    error = outcome(cluster, topic, size)
    assert error is None or error.code() == KafkaError.MSG_SIZE_TOO_LARGE, error
    return error is not None


def test_each_level_takes_effect_while_brokers_run(cluster: LocalCluster) -> None:
    """The same record, accepted or refused by who leads, as message.max.bytes goes from level to level."""
    one, two = topic_on(cluster, 1), topic_on(cluster, 2)
    assert not is_too_large(cluster, one, 5000)
    everywhere, alone = ("--entity-type=brokers", "--entity-default"), ("--entity-type=brokers", "--entity-name=1")
    configs(cluster, "alter", *everywhere, "--add-config", "message.max.bytes=1000")
    until(lambda: is_too_large(cluster, one, 5000) and is_too_large(cluster, two, 5000), 10)
    configs(cluster, "alter", *alone, "--add-config", "message.max.bytes=9000")
    until(lambda: not is_too_large(cluster, one, 5000), 10)
    assert is_too_large(cluster, two, 5000)
    of_topic = ("--entity-type=topics", f"--entity-name={two}")
    configs(cluster, "alter", *of_topic, "--add-config", "max.message.bytes=8000")
    until(lambda: not is_too_large(cluster, two, 5000), 10)
    sources = [s["source"] for s in described(cluster, *of_topic)["max.message.bytes"]["synonyms"]]
    assert sources[0] == "DYNAMIC_TOPIC_CONFIG"
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG" in sources
    assert described(cluster, *alone)["message.max.bytes"]["source"] == "DYNAMIC_BROKER_CONFIG"
    assert described(cluster, *everywhere)["message.max.bytes"]["value"] == "1000"
    configs(cluster, "alter", *alone, "--delete-config", "message.max.bytes")
    until(lambda: is_too_large(cluster, one, 5000), 10)
    assert "Invalid config(s): message.max.bytes" in configs(
        cluster, "alter", *alone, "--delete-config", "message.max.bytes", status=1
    )


def test_a_min_isr_for_all_brokers_counts_at_once_and_only_as_far_as_there_are_replicas(cluster: LocalCluster) -> None:
    """T44: tools are told what counts, not what is configured."""
    topic = topic_on(cluster, 1)
    configs(cluster, "alter", "--entity-type=brokers", "--entity-default", "--add-config", "min.insync.replicas=3")
    assert outcome(cluster, topic, 10) is None
    shown = strandline("topics", "describe", topic, "--json", "--bootstrap-server", cluster.bootstrap)
    assert [row["effective_min_isr"] for row in json.loads(shown)] == [1]
    row = described(cluster, "--entity-type=topics", f"--entity-name={topic}", "--all")["min.insync.replicas"]
    assert (row["value"], row["source"]) == ("3", "DYNAMIC_DEFAULT_BROKER_CONFIG")


def test_a_throttle_and_a_retention_of_one_broker_take_effect_while_it_runs(cluster: LocalCluster) -> None:
    topic = topic_on(cluster, 1)
    alone = ("--entity-type=brokers", "--entity-name=1")
    settings = "leader.replication.throttled.rate=1000,log.retention.ms=77,log.segment.bytes=1048576"
    configs(cluster, "alter", *alone, "--add-config", settings)
    rows = described(cluster, *alone)
    assert {name: row["source"] for name, row in rows.items() if name != "min.insync.replicas"} == dict.fromkeys(
        ("leader.replication.throttled.rate", "log.retention.ms", "log.segment.bytes"), "DYNAMIC_BROKER_CONFIG"
    )
    for _ in range(3):
        assert outcome(cluster, topic, 900_000) is None
    folder = cluster.node(1).data_path / f"{topic}-0"
    until(lambda: len(list(folder.glob("*.log"))) >= 2, 10)


def test_librdkafka_sees_where_a_value_comes_from(shared_cluster: LocalCluster) -> None:
    topic = topic_on(shared_cluster, 1)
    admin = admin_of(shared_cluster)
    change = [ConfigEntry("retention.ms", "5", incremental_operation=AlterConfigOpType.SET)]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=change)
    admin.incremental_alter_configs([resource])[resource].result(10)
    until(lambda: described(shared_cluster, "--entity-type=topics", f"--entity-name={topic}"), 10)
    found = admin.describe_configs([resource])[resource].result(10)
    entry = found["retention.ms"]
    assert (entry.value, ConfigSource(entry.source), entry.is_default) == (
        "5",
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
        False,
    )
    assert list(entry.synonyms) == ["retention.ms", "log.retention.hours"]
    broker = ConfigResource(ResourceType.BROKER, "1")
    of_broker = admin.describe_configs([broker])[broker].result(10)
    assert ConfigSource(of_broker["node.id"].source) is ConfigSource.STATIC_BROKER_CONFIG
    assert of_broker["node.id"].is_read_only
    assert not of_broker["log.retention.ms"].is_read_only


def test_the_older_request_of_two_clients_replaces_everything(shared_cluster: LocalCluster) -> None:
    topic = topic_on(shared_cluster, 1)
    where = ("--entity-type=topics", f"--entity-name={topic}")
    configs(shared_cluster, "alter", *where, "--add-config", "retention.ms=5,segment.ms=6")
    admin = admin_of(shared_cluster)
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"segment.ms": "7"})
    admin.alter_configs([resource])[resource].result(10)
    until(lambda: {n: r["value"] for n, r in described(shared_cluster, *where).items()} == {"segment.ms": "7"}, 10)
    bad = ConfigResource(ResourceType.TOPIC, topic, set_config={"segment.ms": "none"})
    with pytest.raises(KafkaException, match="Not a number of type LONG"):
        admin.alter_configs([bad])[bad].result(10)
    # kafka-python reads what is set and sends it along, since the request would take it back.
    old = KafkaAdminClient(bootstrap_servers=shared_cluster.bootstrap)
    try:
        old.alter_configs([OldResource(OldType.TOPIC, topic, {"retention.bytes": "8"})], incremental=False)
    finally:
        old.close()
    both = {"segment.ms": "7", "retention.bytes": "8"}
    until(lambda: {n: r["value"] for n, r in described(shared_cluster, *where).items()} == both, 10)


def test_every_setting_is_shown_with_what_it_is_for(shared_cluster: LocalCluster) -> None:
    text = configs(shared_cluster, "describe", "--entity-type=brokers", "--entity-name=2", "--all", "--docs")
    assert text.startswith("All configs for broker 2 are:\n")
    assert "  node.id=2 sensitive=false synonyms={STATIC_BROKER_CONFIG:node.id=2}\n" in text
    assert "unique in the cluster" in text
    refused = configs(
        shared_cluster, "alter", "--entity-type=brokers", "--entity-default", "--add-config=node.id=4", status=1
    )
    assert "Cannot update these configs dynamically: [node.id] (INVALID_REQUEST)" in refused


def test_a_group_has_settings_of_its_own_which_are_listed_and_taken_back(shared_cluster: LocalCluster) -> None:
    key, name = "consumer.session.timeout.ms", f"g-{uuid.uuid4().hex[:10]}"
    where = ("--entity-type=groups", f"--entity-name={name}")
    done = configs(shared_cluster, "alter", *where, f"--add-config={key}=60000")
    assert done == f"Completed updating config for group {name}.\n"
    until(lambda: list(described(shared_cluster, *where)) == [key], 10)
    row = described(shared_cluster, *where)[key]
    assert (row["value"], row["source"], row["synonyms"][0]["name"]) == ("60000", "DYNAMIC_GROUP_CONFIG", key)
    assert (
        described(shared_cluster, *where, "--all")["consumer.heartbeat.interval.ms"]["source"] != "DYNAMIC_GROUP_CONFIG"
    )
    refused = configs(shared_cluster, "alter", *where, f"--add-config={key}=60001", status=1)
    assert f"{key} must be less than or equal to group.consumer.max.session.timeout.ms (INVALID_CONFIG)" in refused
    assert f"Dynamic configs for group {name} are:" in configs(shared_cluster, "describe", "--entity-type=groups")
    configs(shared_cluster, "alter", *where, f"--delete-config={key}")
    until(lambda: name not in configs(shared_cluster, "describe", "--entity-type=groups"), 10)
    levels = json.loads(strandline("features", "describe", "--json", "--bootstrap-server", shared_cluster.bootstrap))
    assert ("group.version", 1) in {(row["feature"], row["level"]) for row in levels}
