"""A real node with an authorizer, and a real client whose rights are taken away while it reads and writes.

Nobody says who it is, so all clients are User:ANONYMOUS. It is permitted everything about which there is no ACL.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from tests.cluster.driving import QUICK, admin_of, create, until

from strandline.metadata.configs.node_configs import STANDARD_AUTHORIZER
from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster

DENIED = "TOPIC_AUTHORIZATION_FAILED"
AUTHORIZER = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
SOMEBODY_ELSE = AclBinding(
    ResourceType.TOPIC, "t", ResourcePatternType.LITERAL, "User:else", "*", AclOperation.ALL, AclPermissionType.ALLOW
)
ALL_OF_T = AclBindingFilter(
    ResourceType.TOPIC,
    "t",
    ResourcePatternType.LITERAL,
    None,  # every principal
    None,  # every host
    AclOperation.ANY,
    AclPermissionType.ANY,
)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster", 1, properties={**QUICK, **AUTHORIZER}) as cluster:
        create(cluster, "t")
        yield cluster


def produced(producer: Producer) -> str:
    """The name of the error that the record got; empty if it was written."""
    errors: list[str] = []
    try:
        producer.produce("t", b"v", on_delivery=lambda error, _: errors.append(name_of(error)))
    except KafkaException as refused:  # it knows already, from metadata
        return str(refused.args[0].name())
    producer.flush(20)
    return errors[0]


def consumed(consumer: Consumer) -> str:
    """The same for the next record, or error, that is read."""
    while (message := consumer.poll(20)) is not None:
        return name_of(message.error())
    raise AssertionError("nothing came")


def name_of(error: Any) -> str:
    return "" if error is None else str(error.name())


def done(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(10)


def test_a_right_that_is_taken_away_is_gone_at_once_and_one_that_is_given_back_is_there(guarded: LocalCluster) -> None:
    servers = guarded.bootstrap
    admin = admin_of(guarded)
    producer = Producer({"bootstrap.servers": servers, "topic.metadata.refresh.interval.ms": 100})
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("t", 0, 0)])
    try:
        assert produced(producer) == ""
        assert consumed(consumer) == ""

        done(admin.create_acls([SOMEBODY_ELSE]))
        assert [acl.principal for acl in admin.describe_acls(ALL_OF_T).result(10)] == ["User:else"]
        assert produced(producer) == DENIED
        assert consumed(consumer) == DENIED
        assert "t" not in admin.list_topics(timeout=10).topics
        assert name_of(admin.list_topics("t", timeout=10).topics["t"].error) == DENIED

        done(admin.delete_acls([ALL_OF_T]))
        until(lambda: produced(producer) == "")
        until(lambda: consumed(consumer) == "")
    finally:
        consumer.close()
