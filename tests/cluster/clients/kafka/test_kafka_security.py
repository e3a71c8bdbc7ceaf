"""Kafka's own tools and Java clients against secured nodes: users, quotas, ACLs, and every way to come in.

As in `test_kafka_tools.py`, they need java, and in KAFKA_TOOLS a class path with Kafka's tools.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.cluster.clients.kafka.test_kafka_tools import Tools, has_class, with_java
from tests.cluster.clients.test_sasl import BEARER, MECHANISMS, PASSWORD, SAYS, SHA_512, WRONG, Login, World, world
from tests.cluster.clients.test_sasl import ask_for as topic_with_sasl
from tests.cluster.clients.test_tls import Secured
from tests.cluster.clients.test_tls import ask_for as topic_with_tls
from tests.cluster.clients.test_tls import secured as listeners
from tests.cluster.driving import QUICK, until

from strandline.testing.certificates import write_private
from strandline.testing.local_cluster import LocalCluster
from strandline.testing.secured import ADMIN, ALICE

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("kafka-tools"),
    pytest.mark.timeout(600),  # each command starts a JVM
]

__all__ = ["listeners", "world"]  # fixtures
OPTION = {"console-producer": "--producer.config", "console-consumer": "--consumer.config"}
PEM = {"ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM"}
OAUTH = "org.apache.kafka.common.security.oauthbearer"
HANDLER = "OAuthBearerLoginCallbackHandler"


class As(Tools):
    """Kafka's tools with one user's settings, at one address."""

    def __init__(self, cluster: LocalCluster, folder: Path, address: str, properties: Mapping[str, str]) -> None:
        super().__init__(cluster, folder)
        self.address = address
        self.properties = folder / "java.properties"
        write_private(self.properties, "".join(f"{key}={value}\n" for key, value in properties.items()))

    def __call__(self, tool: str, *arguments: str, status: int = 0, stdin: str = "") -> str:
        how = ("--bootstrap-server", self.address, OPTION.get(tool, "--command-config"), str(self.properties))
        return self.run(tool, *how, *arguments, status=status, stdin=stdin)

    def write(self, topic: str, line: str, status: int = 0) -> str:
        return self("console-producer", "--topic", topic, "--sync", stdin=f"{line}\n", status=status)

    def read(self, topic: str, count: int, group: str = "") -> list[str]:
        how = ("--from-beginning", "--max-messages", str(count), "--timeout-ms", "60000")
        named = ("--group", group) if group else ()
        return self("console-consumer", "--topic", topic, *how, *named).splitlines()


# --- users, quotas and ACLs


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three nodes with TLS, SASL and ACLs."""
    with LocalCluster(tmp_path_factory.mktemp("three-secured"), 3, properties=QUICK, is_secure=True) as cluster:
        yield cluster


def login(cluster: LocalCluster, folder: Path, user: str, password: str = "") -> As:
    """One of the cluster's own users, whose file is as the cluster made it; or another, with this password."""
    assert cluster.secured is not None
    own = cluster.secured.client(user if not password else ALICE)
    if password:
        jaas = own["sasl.jaas.config"].replace(f'"{ALICE}"', f'"{user}"')
        own["sasl.jaas.config"] = jaas.replace(cluster.secured.password(ALICE), password)
    made = folder / f"{user}-{len(password)}"
    made.mkdir()
    return As(cluster, made, cluster.bootstrap, own)


@with_java
def test_a_user_is_added_permitted_and_removed_with_kafkas_tools(three: LocalCluster, tmp_path: Path) -> None:
    admin, carl = login(three, tmp_path, ADMIN), login(three, tmp_path, "carl", "carls=secret")
    carls = ("--entity-type", "users", "--entity-name", "carl")
    refused = f"invalid credentials with SASL mechanism {SHA_512}"
    assert refused in carl.write("carls", "too early", status=1)

    admin("configs", "--alter", *carls, "--add-config", f"{SHA_512}=[iterations=8192,password=carls=secret]")
    described = f"SCRAM credential configs for user-principal 'carl' are {SHA_512}=iterations=8192"
    until(lambda: described in admin("configs", "--describe", *carls), 40)
    many = f"{SHA_512}=[iterations=20000,password=x]"
    assert "Too many iterations" in admin("configs", "--alter", *carls, "--add-config", many, status=1)

    assert "TopicAuthorizationException" in carl.write("carls", "not yet", status=1)
    assert "ClusterAuthorizationException" in carl("acls", "--list", status=1)
    admin("topics", "--create", "--topic", "carls", "--replication-factor", "3")
    who = ("--allow-principal", "User:carl")
    admin("acls", "--add", *who, "--topic", "carls", "--producer")
    admin("acls", "--add", *who, "--topic", "carls", "--group", "carls", "--consumer")
    until(lambda: admin("acls", "--list", "--topic", "carls").count("principal=User:carl") == 4, 40)
    assert "Exception" not in carl.write("carls", "hello")
    assert carl.read("carls", 1, group="carls") == ["hello"]
    assert carl.read("carls", 1, group="another") == [], "the group is not his"
    admin("acls", "--remove", "--force", *who, "--topic", "carls", "--producer")
    # Its producer is idempotent: that needs Write on some topic.
    assert "ClusterAuthorizationException" in carl.write("carls", "no more", status=1)
    until(lambda: admin("acls", "--list", "--topic", "carls").count("operation=READ") == 1, 40)

    admin("configs", "--alter", *carls, "--delete-config", SHA_512)
    until(lambda: SHA_512 not in admin("configs", "--describe", *carls), 40)
    assert refused in carl.write("carls", "too late", status=1)
    gone = admin("configs", "--alter", *carls, "--delete-config", SHA_512, status=1)
    assert "Attempt to delete a user credential that does not exist" in gone


@with_java
def test_quotas_of_users_clients_and_addresses_are_set_described_and_removed(
    three: LocalCluster, tmp_path: Path
) -> None:
    admin, carls = login(three, tmp_path, ADMIN), ("--entity-type", "users", "--entity-name", "carl")
    quotas = (
        (carls, "producer_byte_rate=1048576", "user-principal 'carl' are producer_byte_rate=1048576.0"),
        (
            (*carls, "--entity-type", "clients", "--entity-default"),
            "request_percentage=50",
            "user-principal 'carl', the default client-id are request_percentage=50.0",
        ),
        (
            ("--entity-type", "ips", "--entity-name", "127.0.0.9"),
            "connection_creation_rate=10",
            "ip '127.0.0.9' are connection_creation_rate=10.0",
        ),
    )
    for entity, given, shown in quotas:
        admin("configs", "--alter", *entity, "--add-config", given)
        until(
            lambda entity=entity, shown=shown: f"Quota configs for {shown}" in admin("configs", "--describe", *entity),
            40,
        )
        admin("configs", "--alter", *entity, "--delete-config", given.partition("=")[0])
        until(lambda entity=entity: "Quota configs" not in admin("configs", "--describe", *entity), 40)


@with_java
def test_delegation_tokens_are_refused_with_a_reason(three: LocalCluster, tmp_path: Path) -> None:
    alice = login(three, tmp_path, ALICE)
    for action, api in (
        (("--create", "--max-life-time-period", "-1"), "CREATE_DELEGATION_TOKEN"),
        (("--describe",), "DESCRIBE_DELEGATION_TOKEN"),
    ):
        said = alice("delegation-tokens", *action, status=1)
        assert "UnsupportedVersionException" in said and api in said


# --- each way in


def java_login(world: World, folder: Path, way: Login) -> As:
    properties = way.properties | PEM
    if way.mechanism == BEARER:
        package = f"{OAUTH}.secured" if has_class(f"{OAUTH}.secured.{HANDLER}") else OAUTH
        properties |= {
            "sasl.login.callback.handler.class": f"{package}.{HANDLER}",
            "sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required;",
        }
    made = folder / f"{way.listener}-{way.mechanism}-{way.is_right}"
    made.mkdir()
    return As(world.cluster, made, world.at[way.listener], properties)


@with_java
def test_a_java_client_comes_in_by_each_mechanism_with_and_without_tls(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = ",".join((world.folder / f"{is_right}.jwt").as_uri() for is_right in (True, False))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={urls}")
    topic_with_sasl(world, "java")
    ways = [(listener, mechanism) for listener in ("SASL_PLAINTEXT", "SASL_SSL") for mechanism in MECHANISMS]
    for way in ways:
        assert "Exception" not in java_login(world, tmp_path, Login(world, *way)).write("java", " ".join(way))
    reader = java_login(world, tmp_path, Login(world, "BRIEF", "SCRAM-SHA-256"))
    assert sorted(reader.read("java", len(ways))) == sorted(map(" ".join, ways))
    for mechanism in MECHANISMS:
        said = java_login(world, tmp_path, Login(world, "SASL_SSL", mechanism, is_right=False)).write("java", "x", 1)
        assert "SaslAuthenticationException" in said and SAYS[mechanism] in said
        assert WRONG not in said and PASSWORD not in said


@with_java
def test_a_java_client_and_certificates_of_both_sides(listeners: Secured, tmp_path: Path) -> None:
    topic_with_tls(listeners, "java")

    def tls(listener: str, certificate: str = "", authority: str = "ca") -> As:
        made = tmp_path / f"{listener}-{certificate}-{authority}"
        made.mkdir(exist_ok=True)
        properties = listeners.properties(certificate, authority) | PEM
        return As(listeners.cluster, made, listeners.at[listener], properties)

    tls("SSL").write("java", "without")
    tls("MUTUAL", "client").write("java", "with")
    assert sorted(tls("MUTUAL", "client").read("java", 2)) == ["with", "without"]
    for refused, why in (
        (tls("SSL", authority="stranger"), "PKIX path"),
        (tls("EXPIRED"), "CertificateExpiredException"),
        (tls("ELSEWHERE"), "No subject alternative names matching IP address 127.0.0.1 found"),
        (tls("MUTUAL"), "SslAuthenticationException"),
        (tls("MUTUAL", "expired"), "SslAuthenticationException"),
    ):
        said = refused.write("java", "x", 1)
        assert "SSL handshake failed" in said or "SslAuthenticationException" in said
        assert why in said
