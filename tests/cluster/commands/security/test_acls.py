"""ACLs on a real node: what one client creates, others and the command line see, and Kafka's clients understand."""

import json
import uuid
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from tests.cluster import commanding
from tests.cluster.driving import admin_of, until

from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster

ANY = {
    "restype": ResourceType.ANY,
    "name": None,
    "resource_pattern_type": ResourcePatternType.ANY,
    "principal": None,
    "host": None,
    "operation": AclOperation.ANY,
    "permission_type": AclPermissionType.ANY,
}


def acls(cluster: LocalCluster, *arguments: str, status: int = 0) -> Any:
    """What `strandline acls` prints as JSON; or, if it is to fail, what it complains about."""
    done = commanding.strandline("acls", *arguments, "--json", "--bootstrap-server", cluster.bootstrap)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout) if status == 0 else done.stderr


def binding(name: str, operation: AclOperation, **fields: Any) -> AclBinding:
    values = {
        "restype": ResourceType.TOPIC,
        "name": name,
        "resource_pattern_type": ResourcePatternType.LITERAL,
        "principal": f"User:{name}",
        "host": "*",
        "operation": operation,
        "permission_type": AclPermissionType.ALLOW,
    }
    return AclBinding(**{**values, **fields})


def found(row: AclBinding) -> tuple[str, str, str, str]:
    return row.resource_pattern_type.name, row.host, row.operation.name, row.permission_type.name


def test_kafkas_client_creates_describes_and_deletes_acls(one_node: LocalCluster) -> None:
    admin = admin_of(one_node)
    name = f"acl-{uuid.uuid4().hex[:10]}"
    read = binding(name, AclOperation.READ)
    denied = binding(
        name,
        AclOperation.WRITE,
        resource_pattern_type=ResourcePatternType.PREFIXED,
        permission_type=AclPermissionType.DENY,
        host="::1",
    )
    wrong = binding(name, AclOperation.READ, principal="nobody")
    for _ in range(2):  # an ACL that exists is created again
        outcomes = admin.create_acls([read, denied, wrong])
        for good in (read, denied):
            assert outcomes[good].result(10) is None
        with pytest.raises(KafkaException, match="Could not parse principal from `nobody`"):
            outcomes[wrong].result(10)

    def described(**wanted: Any) -> list[tuple[str, str, str, str]]:
        asked = AclBindingFilter(**{**ANY, "restype": ResourceType.TOPIC, "name": name, **wanted})
        return sorted(map(found, admin.describe_acls(asked).result(10)))

    both = [("LITERAL", "*", "READ", "ALLOW"), ("PREFIXED", "::1", "WRITE", "DENY")]
    until(lambda: described() == both, 10)
    assert described(host="::1") == both[1:]
    assert described(name=f"{name}-more") == []
    assert described(name=f"{name}-more", resource_pattern_type=ResourcePatternType.MATCH) == both[1:]
    one, everything = (
        AclBindingFilter(**{**ANY, "principal": f"User:{name}", "operation": operation})
        for operation in (AclOperation.READ, AclOperation.ANY)
    )
    deleted = admin.delete_acls([one, everything])
    assert [found(row) for row in deleted[one].result(10)] == both[:1]
    assert sorted(found(row) for row in deleted[everything].result(10)) == both
    until(lambda: described() == [], 10)


def test_the_command_line_adds_lists_and_removes_acls(one_node: LocalCluster) -> None:
    name = f"acl-{uuid.uuid4().hex[:10]}"
    who, resources = ("--allow-principal", f"User:{name}"), ("--topic", name, "--group", name)
    added = acls(one_node, "add", *who, *resources, "--consumer")
    assert [(row["resource_type"], row["operation"], row["outcome"]) for row in added] == [
        ("TOPIC", "READ", "added"),
        ("TOPIC", "DESCRIBE", "added"),
        ("GROUP", "READ", "added"),
    ]
    listed = ("list", "--principal", f"User:{name}")
    until(lambda: len(acls(one_node, *listed)) == 3, 10)
    assert {row["outcome"] for row in acls(one_node, "add", *who, *resources, "--consumer")} == {"exists"}
    assert "would remove 1 ACLs" in acls(one_node, "remove", "--group", name, status=2)
    assert [row["resource_type"] for row in acls(one_node, "remove", "--group", name, "--force")] == ["GROUP"]
    until(lambda: len(acls(one_node, *listed)) == 2, 10)
    acls(one_node, "remove", *who, *resources, "--consumer", "--force")
    until(lambda: acls(one_node, *listed) == [], 10)


def test_without_an_authorizer_a_command_says_how_to_turn_it_on(shared_cluster: LocalCluster) -> None:
    """A broker forwards what it does not decide, and the controller refuses it too."""
    said = acls(shared_cluster, "list", status=1)
    assert "No Authorizer is configured on the broker" in said and "authorizer.class.name=" in said
    admin = admin_of(shared_cluster)
    one = binding("t", AclOperation.READ)
    with pytest.raises(KafkaException, match="No Authorizer is configured"):
        admin.create_acls([one])[one].result(10)
