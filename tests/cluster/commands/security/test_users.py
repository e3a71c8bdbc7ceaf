"""Users and quotas on a real cluster: librdkafka's and kafka-python's admin clients, and our own commands."""

import json
import uuid
import warnings
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from tests.cluster import commanding
from tests.cluster.driving import admin_of, until

from strandline.client.admin.quotas import component, quotas_of
from strandline.client.admin.users import credentials_of
from strandline.testing.local_cluster import LocalCluster

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kafka import KafkaAdminClient
    from kafka.admin import ScramMechanism as KafkasMechanism
    from kafka.admin import UserScramCredentialUpsertion as KafkasUpsertion

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]


def strandline(cluster: LocalCluster, *arguments: str, status: int = 0) -> str:
    """What a command prints; or, if it is to fail, what it complains about."""
    done = commanding.strandline(*arguments, "--bootstrap-server", cluster.bootstrap)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def new_name() -> str:
    return f"u-{uuid.uuid4().hex[:10]}"


def mechanisms(cluster: LocalCluster, user: str) -> list[tuple[str, int]]:
    return [(one.mechanism, one.iterations) for one in credentials_of(cluster.bootstrap, user)]


def test_librdkafka_sets_describes_and_deletes_a_credential(three_nodes: LocalCluster) -> None:
    user, admin = new_name(), admin_of(three_nodes)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, b"password", b"salt")])[user].result(
        10
    )
    until(lambda: mechanisms(three_nodes, user) == [("SCRAM-SHA-512", 8192)], 10)
    described = admin.describe_user_scram_credentials([user])[user].result(10)
    (found,) = described.scram_credential_infos
    assert (found.mechanism, found.iterations) == (ScramMechanism.SCRAM_SHA_512, 8192)
    gone = UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_512)
    admin.alter_user_scram_credentials([gone])[user].result(10)
    until(lambda: mechanisms(three_nodes, user) == [], 10)
    for ask in (
        lambda: admin.alter_user_scram_credentials([gone])[user].result(10),
        lambda: admin.describe_user_scram_credentials([user])[user].result(10),
    ):
        with pytest.raises(KafkaException) as refused:
            ask()
        assert refused.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND


def test_a_user_is_added_listed_and_removed(three_nodes: LocalCluster, tmp_path: Path) -> None:
    user, path = new_name(), tmp_path / "password"
    path.write_text("secret\n")
    path.chmod(0o600)
    added = strandline(three_nodes, "users", "add", user, "--password-file", str(path), "--iterations", "5000")
    assert added == f"User {user} can log in with SCRAM-SHA-256.\n"
    alter = ("configs", "alter", "--entity-type", "users", "--entity-name", user)
    strandline(three_nodes, *alter, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=a,b=c]")
    until(lambda: mechanisms(three_nodes, user) == [("SCRAM-SHA-256", 5000), ("SCRAM-SHA-512", 8192)], 10)
    rows = json.loads(strandline(three_nodes, "users", "list", "--json"))
    assert {"user": user, "mechanism": "SCRAM-SHA-256", "iterations": 5000} in rows
    describe = ("configs", "describe", "--entity-type", "users", "--entity-name", user)
    assert strandline(three_nodes, *describe) == (
        f"SCRAM credential configs for user-principal '{user}' are"
        " SCRAM-SHA-256=iterations=5000, SCRAM-SHA-512=iterations=8192\n"
    )
    strandline(three_nodes, *alter, "--delete-config", "SCRAM-SHA-512")
    until(lambda: mechanisms(three_nodes, user) == [("SCRAM-SHA-256", 5000)], 10)
    assert "cannot log in with SCRAM-SHA-256 any more" in strandline(three_nodes, "users", "remove", user)
    until(lambda: mechanisms(three_nodes, user) == [], 10)
    assert f"user {user} has no credential" in strandline(three_nodes, "users", "remove", user, status=1)


def quotas(cluster: LocalCluster, *entity: tuple[str, str | None]) -> dict[str, float]:
    found = quotas_of(cluster.bootstrap, *(component(kind, name) for kind, name in entity))
    return next(iter(found.values()), {})


def test_quotas_are_set_shown_and_removed(three_nodes: LocalCluster) -> None:
    user = new_name()
    entity = ("--entity-type", "users", "--entity-name", user, "--entity-type", "clients", "--entity-default")
    added = ("--add-config", "producer_byte_rate=1024,request_percentage=12.5")
    out = strandline(three_nodes, "configs", "alter", *entity, *added)
    assert out == f"Completed updating config for user {user}, client (default).\n"
    both = {"producer_byte_rate": 1024.0, "request_percentage": 12.5}
    until(lambda: quotas(three_nodes, ("user", user), ("client-id", None)) == both, 10)
    assert strandline(three_nodes, "configs", "describe", *entity) == (
        f"Quota configs for user-principal '{user}', the default client-id are"
        " producer_byte_rate=1024.0, request_percentage=12.5\n"
    )
    rows = json.loads(strandline(three_nodes, "configs", "describe", *entity[:5], "clients", "--json"))
    assert rows == [{"entity": {"client-id": None, "user": user}, "configs": both}]
    strandline(three_nodes, "configs", "alter", *entity, "--delete-config", "producer_byte_rate")
    until(lambda: quotas(three_nodes, ("user", user), ("client-id", None)) == {"request_percentage": 12.5}, 10)
    refused = strandline(three_nodes, "configs", "alter", *entity, "--delete-config", "producer_byte_rate", status=1)
    assert "Invalid config(s): producer_byte_rate" in refused
    refused = strandline(three_nodes, "configs", "alter", *entity, "--add-config", "producer_byte_rate=0.5", status=1)
    assert "INVALID_REQUEST: producer_byte_rate cannot be a fractional value." in refused
    here = ("--entity-type", "ips", "--entity-name", "192.0.2.7")
    strandline(three_nodes, "configs", "alter", *here, "--add-config", "connection_creation_rate=100")
    until(lambda: quotas(three_nodes, ("ip", "192.0.2.7")) == {"connection_creation_rate": 100.0}, 10)
    strandline(three_nodes, "configs", "alter", *here, "--delete-config", "connection_creation_rate")


def test_kafka_python_sets_and_describes_a_credential(three_nodes: LocalCluster) -> None:
    user = new_name()
    admin: Any = KafkaAdminClient(bootstrap_servers=three_nodes.bootstrap)
    wanted = KafkasUpsertion(user, KafkasMechanism.SCRAM_SHA_256, "password", iterations=4095)
    assert admin.alter_user_scram_credentials([wanted]) == {user: "Too few iterations"}
    wanted = KafkasUpsertion(user, KafkasMechanism.SCRAM_SHA_256, "password", iterations=4096)
    assert admin.alter_user_scram_credentials([wanted]) == {user: None}
    until(lambda: mechanisms(three_nodes, user) == [("SCRAM-SHA-256", 4096)], 10)
    described = admin.describe_user_scram_credentials([user])[user]["credential_infos"]
    assert described == [{"mechanism": KafkasMechanism.SCRAM_SHA_256, "iterations": 4096}]
    admin.close()
