"""Configurations as clients see them: DescribeConfigs and ListConfigResources."""

from typing import Any

import pytest
from tests.unit.broker.handlers.fake_node import A, FakeNode, ask

from strandline.base.errors import ErrorCode as E
from strandline.base.secret import Secret
from strandline.broker.handlers.configs import describe_configs, list_config_resources
from strandline.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from strandline.metadata.records import CLIENT_METRICS_RESOURCE
from strandline.wire.messages.cluster.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from strandline.wire.messages.cluster.list_config_resources import ListConfigResourcesRequest

# --- DescribeConfigs


def configs(node: FakeNode, kind: int, name: str, keys: tuple[str, ...] | None, version: int = 4) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    return ask(describe_configs, node, request, version).results[0]


def test_a_topics_value_comes_from_the_first_source_that_has_one() -> None:
    node = FakeNode()
    node.topic("t", A, 1)
    seen = []
    for step in ("default", "static", "cluster", "broker", "topic"):
        if step == "static":
            node.config.explicit["log.retention.ms"] = 3
        if step == "cluster":
            node.image.configs[(BROKER_RESOURCE, CLUSTER_DEFAULT)] = {"log.retention.ms": "2"}
            node.image.configs[(BROKER_RESOURCE, "2")] = {"log.retention.ms": "7"}  # another broker's own
        if step == "broker":
            node.image.configs[(BROKER_RESOURCE, "1")] = {"log.retention.ms": "4"}
        if step == "topic":
            node.image.configs[(TOPIC_RESOURCE, "t")] = {"retention.ms": "1"}
        (entry,) = configs(node, TOPIC_RESOURCE, "t", ("retention.ms",)).configs
        seen.append((entry.value, entry.config_source))
    assert seen == [("604800000", 5), ("3", 4), ("2", 3), ("4", 2), ("1", 1)]
    assert [(s.name, s.value, s.source) for s in entry.synonyms] == [
        ("retention.ms", "1", 1),
        ("log.retention.ms", "4", 2),
        ("log.retention.ms", "2", 3),
        ("log.retention.ms", "3", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_a_synonym_in_another_unit_is_shown_in_that_unit_and_the_topics_value_in_its_own() -> None:
    node = FakeNode()
    node.topic("t", A, 1)
    node.config.explicit["log.retention.hours"] = 1
    (entry,) = configs(node, TOPIC_RESOURCE, "t", ("retention.ms",)).configs
    assert (entry.value, entry.config_source) == ("3600000", 4)
    assert [(s.name, s.value) for s in entry.synonyms] == [("log.retention.hours", "1"), ("log.retention.hours", "168")]


def test_a_brokers_key_is_shown_with_those_that_stand_in_for_it() -> None:
    node = FakeNode()
    node.config.explicit["log.retention.minutes"] = 5
    node.image.configs[(BROKER_RESOURCE, "1")] = {"log.retention.ms": "4"}
    of = {c.name: c for c in configs(node, BROKER_RESOURCE, "1", None).configs}
    shown = {key: [(s.name, s.value, s.source) for s in of[key].synonyms] for key in of if key.startswith("log.ret")}
    minutes, hours = ("log.retention.minutes", "5", 4), ("log.retention.hours", "168", 5)
    assert shown["log.retention.ms"] == [("log.retention.ms", "4", 2), minutes, hours]
    assert shown["log.retention.minutes"] == [minutes, hours]
    assert shown["log.retention.hours"] == [hours]
    assert (of["log.retention.ms"].value, of["log.retention.ms"].read_only) == ("4", False)
    assert (of["log.retention.hours"].value, of["log.retention.hours"].read_only) == ("168", True)


def test_a_listeners_own_settings_are_shown_where_they_are_set_and_no_secret_of_any_listener() -> None:
    node = FakeNode()
    node.config.explicit["ssl.keystore.key"] = Secret("s3cret")
    node.config.of_listeners = {"inside": {"ssl.client.auth": "required", "ssl.key.password": Secret("s3cret")}}
    own = "listener.name.inside.ssl.key"
    node.image.configs[(BROKER_RESOURCE, "1")] = {f"{own}.password": "s3cret", f"{own}store.location": "/k"}
    found = configs(node, BROKER_RESOURCE, "1", None)
    assert "s3cret" not in repr(found)
    of = {c.name: c for c in found.configs}
    assert (of["ssl.keystore.key"].is_sensitive, of["ssl.keystore.key"].config_source) == (True, 4)
    assert [s.source for s in of[f"{own}.password"].synonyms] == [2, 4]
    auth, location = of["listener.name.inside.ssl.client.auth"], of[f"{own}store.location"]
    assert (auth.value, auth.config_source, auth.read_only, auth.is_sensitive) == ("required", 4, True, False)
    assert (location.value, location.config_source, location.read_only) == ("/k", 2, False)
    (alone,) = configs(node, BROKER_RESOURCE, "1", (location.name,)).configs
    assert alone == location


def test_a_listeners_own_limits_are_shown_from_all_three_places() -> None:
    node, name = FakeNode(), "listener.name.inside.max.connections"
    node.config.listener_limits = {"max.connections": {"inside": 7}}
    node.image.configs[(BROKER_RESOURCE, "")] = {name: "50"}
    node.image.configs[(BROKER_RESOURCE, "1")] = {name: "20"}
    (own,) = configs(node, BROKER_RESOURCE, "1", (name,)).configs
    assert (own.value, own.read_only) == ("20", False)
    assert [(s.value, s.source) for s in own.synonyms] == [("20", 2), ("50", 3), ("7", 4)]
    (of_all,) = configs(node, BROKER_RESOURCE, "", None).configs
    assert (of_all.name, of_all.value, of_all.config_source) == (name, "50", 3)


def test_what_was_set_for_all_brokers_is_all_that_the_cluster_default_shows() -> None:
    node = FakeNode()
    node.config.explicit["message.max.bytes"] = 5
    node.image.configs[(BROKER_RESOURCE, "")] = {"message.max.bytes": "7"}
    node.image.configs[(BROKER_RESOURCE, "1")] = {"log.retention.ms": "4"}
    (entry,) = configs(node, BROKER_RESOURCE, "", None).configs
    assert (entry.name, entry.value, entry.config_source, entry.read_only) == ("message.max.bytes", "7", 3, False)
    assert [(s.value, s.source) for s in entry.synonyms] == [("7", 3)]


def test_a_groups_value_is_its_own_or_the_brokers() -> None:
    node = FakeNode()
    key, of_broker = "consumer.session.timeout.ms", "group.consumer.session.timeout.ms"
    seen = []
    for step in ("default", "static", "group"):
        if step == "static":
            node.config.explicit[of_broker] = 50_000
        if step == "group":
            node.image.configs[(GROUP_RESOURCE, "g")] = {key: "60000"}
            node.image.configs[(GROUP_RESOURCE, "h")] = {key: "55000"}
        (entry,) = configs(node, GROUP_RESOURCE, "g", (key,)).configs
        seen.append((entry.value, entry.config_source, entry.read_only))
    assert seen == [("45000", 5, False), ("50000", 4, False), ("60000", 8, False)]
    sources = [(s.name, s.value, s.source) for s in entry.synonyms]
    assert sources == [(key, "60000", 8), (of_broker, "50000", 4), (of_broker, "45000", 5)]
    found = configs(node, GROUP_RESOURCE, "g", None).configs
    assert [c.name for c in found] == ["consumer.heartbeat.interval.ms", key]
    refused = configs(node, GROUP_RESOURCE, "", None)
    assert (refused.error_code, refused.error_message) == (E.INVALID_REQUEST, "Group name must not be empty")


# --- ListConfigResources


def test_resources_are_listed_by_their_types_and_version_0_knows_only_client_metrics() -> None:
    node = FakeNode()
    node.topic("t", A, 1)
    node.image.configs[(GROUP_RESOURCE, "g")] = {"consumer.session.timeout.ms": "60000"}
    node.image.configs[(CLIENT_METRICS_RESOURCE, "s")] = {"metrics": "*"}
    node.image.configs[(TOPIC_RESOURCE, "t")] = {"retention.ms": "1"}
    brokers = [(4, "1"), (4, "2")]
    rows = [
        (1, (), E.NONE, [(32, "g"), (16, "s"), *brokers, (2, "t")]),
        (1, (GROUP_RESOURCE,), E.NONE, [(32, "g")]),
        (1, (TOPIC_RESOURCE, BROKER_RESOURCE), E.NONE, [*brokers, (2, "t")]),
        (1, (8, 16), E.NONE, [(16, "s")]),
        (1, (TOPIC_RESOURCE, 64), E.UNSUPPORTED_VERSION, []),
        (0, (), E.NONE, [(16, "s")]),
    ]
    for version, types, error, listed in rows:
        answer = ask(list_config_resources, node, ListConfigResourcesRequest(resource_types=types), version)
        found = [(row.resource_type, row.resource_name) for row in answer.config_resources]
        assert (answer.error_code, found) == (error, listed), (version, types)


def test_documentation_is_given_where_it_is_asked_for() -> None:
    node = FakeNode()
    node.topic("t", A, 1)
    for kind, name in ((TOPIC_RESOURCE, "t"), (BROKER_RESOURCE, "1"), (GROUP_RESOURCE, "g")):
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name)
        for asked in (True, False):
            request = DescribeConfigsRequest(resources=(resource,), include_documentation=asked)
            entries = ask(describe_configs, node, request, 4).results[0].configs
            assert entries
            assert all((entry.documentation is not None) is asked for entry in entries)


@pytest.mark.parametrize("version", range(1, 5))
def test_null_and_empty_both_ask_for_every_key(version: int) -> None:
    node = FakeNode()
    node.topic("t", A, 1)
    all_keys = configs(node, TOPIC_RESOURCE, "t", None, version).configs
    assert len(all_keys) > 10
    assert configs(node, TOPIC_RESOURCE, "t", (), version).configs == all_keys


def test_of_a_subscription_to_the_metrics_of_clients_what_was_set_is_shown() -> None:
    node = FakeNode()
    node.image.configs[(CLIENT_METRICS_RESOURCE, "s")] = {"metrics": "*", "interval.ms": "100", "of.another": "program"}
    rows = configs(node, CLIENT_METRICS_RESOURCE, "s", None).configs
    shown = [(row.name, row.value, row.config_source, row.config_type, row.read_only, row.synonyms) for row in rows]
    assert shown == [("interval.ms", "100", 7, 3, False, ()), ("metrics", "*", 7, 7, False, ())]
    assert [row.name for row in configs(node, CLIENT_METRICS_RESOURCE, "s", ("metrics",)).configs] == ["metrics"]
    none = configs(node, CLIENT_METRICS_RESOURCE, "x", None)
    assert (none.error_code, none.configs) == (E.NONE, ())
    nameless = configs(node, CLIENT_METRICS_RESOURCE, "", None)
    assert nameless.error_code == E.INVALID_REQUEST
    assert nameless.error_message == "Client metrics subscription name must not be empty"


def test_resources_that_cannot_be_described() -> None:
    node = FakeNode()
    assert configs(node, TOPIC_RESOURCE, "none", None).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert configs(node, BROKER_RESOURCE, "2", None).error_code == E.INVALID_REQUEST, "another broker"
    assert configs(node, BROKER_RESOURCE, "1", None).error_code == E.NONE
    assert configs(node, 99, "x", None).error_code == E.INVALID_REQUEST
