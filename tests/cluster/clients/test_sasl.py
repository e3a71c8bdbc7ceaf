"""Listeners with SASL on a real node, and every client with every mechanism: let in, and not let in.

One node has four listeners for clients: PLAINTEXT, by which the users are made, SASL_PLAINTEXT, SASL_SSL, and BRIEF,
where sessions last two seconds. Its controller's listener has SASL too, and so has that for brokers.
"""

import asyncio
import gc
import json
import logging
import shutil
import ssl
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import pytest
from confluent_kafka import KafkaError, Producer
from tests.cluster.client_topics import batch_of, records_in
from tests.cluster.commanding import strandline
from tests.cluster.driving import until
from tests.unit.client.certificates import make_authority, make_certificate
from tests.unit.security.test_tokens import OTHER_RSA, RSA, public

from strandline.client.admin.users import alter_credentials, upsertion
from strandline.client.ask import ask, config_of
from strandline.client.cluster import Cluster
from strandline.client.connection import Connection
from strandline.client.errors import AuthenticationFailed, Unreachable
from strandline.client.producing import Producer as OwnProducer
from strandline.testing.local_cluster import HOST, LocalCluster, free_ports
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from aiokafka import AIOKafkaProducer
    from aiokafka.abc import AbstractTokenProvider as AsyncTokenProvider
    from kafka import KafkaProducer
    from kafka.errors import KafkaError as KafkaPythonError
    from kafka.net.sasl.oauth import AbstractTokenProvider

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]

PLAIN, SHA_256, SHA_512, BEARER = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"
MECHANISMS = (PLAIN, SHA_256, SHA_512, BEARER)
NAMES = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "BRIEF")
PASSWORD, WRONG = "alice=s;cret", "not hers"
LOGIN = "org.apache.kafka.common.security"
USERS = f'{LOGIN}.plain.PlainLoginModule required user_alice="{PASSWORD}";'


class World(NamedTuple):
    cluster: LocalCluster
    folder: Path
    at: dict[str, str]  # the address of each listener

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def log(self) -> str:
        return self.cluster.nodes[0].log_path.read_text()


class Login(NamedTuple):
    """How somebody comes in."""

    world: World
    listener: str
    mechanism: str
    is_right: bool = True

    @property
    def protocol(self) -> str:
        return "SASL_SSL" if self.listener == "SASL_SSL" else "SASL_PLAINTEXT"

    @property
    def password(self) -> str:
        return PASSWORD if self.is_right else WRONG

    @property
    def token(self) -> str:
        claims = {"sub": "alice", "iat": int(time.time()), "exp": int(time.time()) + 600, "aud": "kafka"}
        return jwt.encode(claims, RSA if self.is_right else OTHER_RSA, "RS256", {"kid": "rsa"})

    @property
    def properties(self) -> dict[str, str]:
        """Kafka's, for our own client and commands."""
        module = "plain.PlainLoginModule" if self.mechanism == PLAIN else "scram.ScramLoginModule"
        found = {
            "security.protocol": self.protocol,
            "sasl.mechanism": self.mechanism,
            "ssl.truststore.location": self.world.file("ca.pem"),
        }
        if self.mechanism != BEARER:
            return found | {
                "sasl.jaas.config": f'{LOGIN}.{module} required username="alice" password="{self.password}";'
            }
        path = self.world.folder / f"{self.is_right}.jwt"
        path.write_text(self.token)
        return found | {"sasl.oauthbearer.token.endpoint.url": path.as_uri()}

    @property
    def librdkafka(self) -> dict[str, Any]:
        by_token = {"oauth_cb": lambda _: (self.token, time.time() + 600)}
        by_password = {"sasl.username": "alice", "sasl.password": self.password}
        return {
            "bootstrap.servers": self.world.at[self.listener],
            "security.protocol": self.protocol,
            "sasl.mechanism": self.mechanism,
            "ssl.ca.location": self.world.file("ca.pem"),
            **(by_token if self.mechanism == BEARER else by_password),
        }

    @property
    def python(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.world.at[self.listener],
            "security_protocol": self.protocol,
            "sasl_mechanism": self.mechanism,
            **(
                {}
                if self.mechanism == BEARER
                else {"sasl_plain_username": "alice", "sasl_plain_password": self.password}
            ),
            "ssl_context": ssl.create_default_context(cafile=self.world.file("ca.pem")),
        }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("sasl")
    make_authority(folder)
    make_certificate(folder, "server")
    (folder / "keys.json").write_text(json.dumps({"keys": [public(RSA, "rsa")]}))
    ports = free_ports(len(NAMES) + 1)
    at = dict(zip(NAMES, (f"{HOST}:{port}" for port in ports), strict=False))
    advertised = ",".join(f"{name}://{address}" for name, address in at.items())
    properties = {
        "listeners": f"{advertised},CONTROLLER://{HOST}:{ports[-1]}",
        "advertised.listeners": advertised,
        "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in NAMES[:3])
        + ",BRIEF:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.brief.sasl.enabled.mechanisms": SHA_256,
        "listener.name.controller.sasl.enabled.mechanisms": SHA_512,
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
        "listener.name.sasl_ssl.plain.sasl.jaas.config": USERS,
        "listener.name.brief.connections.max.reauth.ms": "2000",
        "sasl.oauthbearer.jwks.endpoint.url": (folder / "keys.json").as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "ssl.keystore.location": str(folder / "server.store"),
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.sasl_ssl.ssl.client.auth": "requested",
        "listener.name.sasl_ssl.ssl.principal.mapping.rules": "RULE:^CN=nobody$/nobody/",
    }
    with LocalCluster(folder / "nodes", 1, ports=[ports[0], ports[-1]], properties=properties) as cluster:
        for mechanism in (SHA_256, SHA_512):
            alter_credentials(at["PLAINTEXT"], upsertion("alice", mechanism, PASSWORD))
        yield World(cluster, folder, at)


def ask_for(world: World, topic: str) -> None:
    """A topic that is there before anybody writes."""
    host, _, port = world.at["PLAINTEXT"].rpartition(":")
    request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))

    def leads() -> bool:
        (found,) = ask(host, int(port), request, 12).topics
        return bool(found.partitions) and found.partitions[0].leader_id == 1

    until(leads)


# --- each client writes one line; a text is why it could not


def through_confluent(login: Login, topic: str) -> str:
    said: list[KafkaError] = []
    producer = Producer({**login.librdkafka, "error_cb": said.append, "log_level": 0})
    producer.produce(topic, b"confluent")
    until(lambda: producer.flush(0.05) == 0 or any(error.code() == KafkaError._AUTHENTICATION for error in said))
    return " ".join(error.str() for error in said if error.code() == KafkaError._AUTHENTICATION)


class AsyncToken(AsyncTokenProvider):  # type: ignore[misc]
    def __init__(self, login: Login) -> None:
        self.login = login

    async def token(self) -> str:
        return self.login.token


class Token(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, login: Login) -> None:
        self.login = login

    def token(self) -> str:
        return self.login.token


def through_aiokafka(login: Login, topic: str) -> str:
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

    async def through() -> str:
        further = {"sasl_oauth_token_provider": AsyncToken(login)} if login.mechanism == BEARER else {}
        producer = AIOKafkaProducer(**login.python, **further)
        try:
            await producer.start()
            await producer.send_and_wait(topic, b"aiokafka")
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            await producer.stop()
        return ""

    return asyncio.run(asyncio.wait_for(through(), 30))


def through_kafka_python(login: Login, topic: str) -> str:
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    further = {"sasl_oauth_token_provider": Token(login)} if login.mechanism == BEARER else {}
    options = {"metadata_max_age_ms": 1000, "bootstrap_timeout_ms": 10_000 if login.is_right else 500}
    try:
        producer = KafkaProducer(**login.python, **further, **options)
    except KafkaPythonError as error:
        return f"{type(error).__name__}: {error}"
    producer.send(topic, b"kafka-python").get(20)
    producer.close()
    return ""


def through_our_client(login: Login, topic: str) -> str:
    try:
        with (
            Cluster(config_of(login.world.at[login.listener], login.properties)) as cluster,
            OwnProducer(cluster) as producer,
        ):
            producer.send(topic, 0, batch_of([b"ours"]))
            producer.flush()
    except AuthenticationFailed as error:
        return str(error)
    return ""


@pytest.mark.parametrize("through", [through_confluent, through_aiokafka, through_kafka_python, through_our_client])
def test_a_client_comes_in_by_each_mechanism_with_and_without_tls(world: World, through: Any) -> None:
    topic = through.__name__
    ask_for(world, topic)
    ways = [(listener, mechanism) for listener in NAMES[1:3] for mechanism in MECHANISMS]
    problems = [(way, found) for way in ways if (found := through(Login(world, *way), topic))]
    assert problems == []
    with Cluster(config_of(world.at["SASL_SSL"], Login(world, "SASL_SSL", PLAIN).properties)) as cluster:
        assert len(records_in(cluster, topic)) == len(ways), "each has written one"


def test_the_operator_sees_who_failed_and_no_secret(world: World) -> None:
    through_our_client(Login(world, "SASL_SSL", SHA_256, is_right=False), "nothing")
    until(lambda: "on SASL_SSL: it could not authenticate: user alice: its proof is wrong" in world.log())
    assert WRONG not in world.log() and PASSWORD not in world.log() and "eyJ" not in world.log()
    assert "sasl.mechanism.inter.broker.protocol has no effect" in world.log()
    described = strandline(
        *["configs", "describe", "--entity-type", "brokers", "--entity-name", "1", "--all", "--bootstrap-server"],
        world.at["PLAINTEXT"],
    )
    assert described.returncode == 0 and "sasl.enabled.mechanisms" in described.stdout
    assert PASSWORD not in described.stdout


SAYS = {
    PLAIN: "Authentication failed: Invalid username or password",
    SHA_256: "invalid credentials with SASL mechanism SCRAM-SHA-256",
    SHA_512: "invalid credentials with SASL mechanism SCRAM-SHA-512",
    BEARER: "invalid_token",
}


@pytest.mark.parametrize("through", [through_confluent, through_aiokafka, through_kafka_python, through_our_client])
def test_a_client_with_a_wrong_password_or_token_learns_why(world: World, through: Any) -> None:
    for mechanism in MECHANISMS:
        found = through(Login(world, "SASL_PLAINTEXT", mechanism, is_right=False), "nothing")
        expected = SAYS[mechanism] if through in (through_confluent, through_our_client) else "Unable to bootstrap"
        assert expected in found, mechanism
        assert WRONG not in found
    gc.collect()  # kafka-python leaves sockets open if it cannot begin: here nobody minds


def test_kcat_comes_in_by_each_password(world: World) -> None:
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed (apt-get install kcat)")
    ask_for(world, "kcat")
    for listener, mechanism in product(("SASL_PLAINTEXT", "SASL_SSL"), (PLAIN, SHA_256, SHA_512)):
        for is_right in (True, False):
            login = Login(world, listener, mechanism, is_right)
            options = [part for key, value in login.librdkafka.items() for part in ("-X", f"{key}={value}")]
            command = ["kcat", *options, "-P", "-t", "kcat", "-X", "message.timeout.ms=2000"]
            done = subprocess.run(command, input=b"x\n", capture_output=True, timeout=30, check=False)
            assert (done.returncode == 0) == is_right, done.stderr
            assert is_right or SAYS[mechanism].encode() in done.stderr


def test_a_certificate_of_a_client_is_not_who_it_is_where_it_authenticates(world: World) -> None:
    """No rule makes a name of it, and it does not keep the client out (KIP-684)."""
    certificate = {"ssl.keystore.location": world.file("server.store")}
    login = Login(world, "SASL_SSL", SHA_512)
    with Cluster(config_of(world.at["SASL_SSL"], login.properties | certificate)) as cluster:
        assert list(cluster.brokers()) == [1]
    wrong = Login(world, "SASL_SSL", SHA_512, is_right=False).properties | certificate
    with pytest.raises(AuthenticationFailed), Cluster(config_of(world.at["SASL_SSL"], wrong)) as cluster:
        cluster.brokers()


def test_a_stranger_gets_nothing_from_brokers_and_controllers(world: World) -> None:
    for address in (world.at["SASL_PLAINTEXT"], f"{HOST}:{world.cluster.nodes[0].controller_port}"):
        host, _, port = address.rpartition(":")
        with pytest.raises(ConnectionError):
            ask(host, int(port), MetadataRequest(), 12)
    assert "on SASL_PLAINTEXT: Metadata before it has authenticated" in world.log()


def test_a_user_whose_password_is_taken_away_is_not_let_in_again(world: World) -> None:
    def run(*arguments: str, **how: Any) -> str:
        done = strandline(*arguments, "--bootstrap-server", world.at["PLAINTEXT"], **how)
        assert done.returncode == 0, done.stderr
        return done.stdout

    alter_credentials(world.at["PLAINTEXT"], upsertion("bob", SHA_512, "bobs"))
    options = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": SHA_512, "sasl.username": "bob"}
    config = config_of(world.at["SASL_PLAINTEXT"], options | {"sasl.password": "bobs"})
    with Cluster(config) as cluster:
        assert list(cluster.brokers()) == [1]
    run(*["configs", "alter", "--entity-type", "users", "--entity-name", "bob", "--delete-config", "SCRAM-SHA-512"])

    def is_refused() -> bool:
        try:
            with Cluster(config) as cluster:
                cluster.brokers()
        except AuthenticationFailed:
            return True
        return False

    until(is_refused)


def test_sessions_are_renewed_in_time_or_end(world: World) -> None:
    host, _, port = world.at["BRIEF"].rpartition(":")
    login = Login(world, "BRIEF", SHA_256)
    config = config_of(world.at["BRIEF"], login.properties)
    ours, lazy = Connection(host, int(port), config), Connection(host, int(port), config)
    assert 0 < lazy.log_in_at - time.monotonic() <= 2
    lazy.log_in_at = 0.0  # one that does not know of it
    began = time.monotonic()
    said: list[KafkaError] = []
    ask_for(world, "brief")
    producer = Producer({**login.librdkafka, "error_cb": said.append, "log_level": 0, "linger.ms": 0})
    delivered = [0]

    def noted(error: KafkaError | None, _: Any) -> None:
        assert error is None
        delivered[0] += 1

    while time.monotonic() - began < 4.5:
        producer.produce("brief", b"x", on_delivery=noted)
        producer.poll(0)
        ours.ask(MetadataRequest(topics=()), 12)
        time.sleep(0.05)
    assert producer.flush(10) == 0 and delivered[0] > 20
    ours.close()
    with pytest.raises(Unreachable):
        lazy.ask(MetadataRequest(topics=()), 12)
    assert "on BRIEF: Metadata after its session has expired: it did not authenticate again" in world.log()
    assert "Produce after its session" not in world.log()


def test_nodes_come_to_each_other_by_the_clusters_secret_where_clients_need_sasl(world: World, tmp_path: Path) -> None:
    """Brokers' and controllers' listeners are SASL_SSL; no user is meant for nodes."""
    client = Login(world, "SASL_SSL", PLAIN).properties
    properties = {
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SASL_SSL",
        "sasl.enabled.mechanisms": PLAIN,
        **{f"listener.name.{name}.plain.sasl.jaas.config": USERS for name in ("sasl_ssl", "controller")},
        "ssl.keystore.location": world.file("server.store"),
        "ssl.truststore.location": world.file("ca.pem"),
    }
    with LocalCluster(tmp_path, 3, properties=properties, protocol="SASL_SSL", client=client) as cluster:
        with Cluster(config_of(cluster.bootstrap, client)) as reached, OwnProducer(reached, creates_topics=True) as own:
            own.send("replicated", 0, batch_of([b"one"]))
            own.flush()  # with acks=all, of at least two replicas
            until(lambda: len(reached.topics(["replicated"])["replicated"].partitions[0].isr) == 3)
        wrong = {**client, "sasl.jaas.config": client["sasl.jaas.config"].replace(PASSWORD, WRONG)}
        with pytest.raises(AuthenticationFailed), Cluster(config_of(cluster.bootstrap, wrong)) as reached:
            reached.brokers()


WITHOUT_PYJWT = "import sys; sys.modules['jwt'] = None; "
RUN = "import sys; from strandline.server.node import run_node; sys.exit(run_node(['--config', sys.argv[1]]))"


def test_a_node_that_cannot_check_tokens_does_not_start_and_says_why(tmp_path: Path) -> None:
    ports = free_ports(2)
    path = tmp_path / "server.properties"
    keys = (tmp_path / "keys.json").as_uri()
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"SASL_PLAINTEXT://{HOST}:{ports[0]},CONTROLLER://{HOST}:{ports[1]}",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@{HOST}:{ports[1]}",
        "log.dirs": str(tmp_path),
        "sasl.enabled.mechanisms": f"{BEARER},{PLAIN}",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
        "sasl.oauthbearer.jwks.endpoint.url": keys,
    }
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    path.chmod(0o640)
    said = f"{path} has passwords, and others may read it (mode 640): chmod 600 {path}"
    for program, why in (
        (RUN, f"cannot start: cannot read {keys}: No such file or directory"),
        (WITHOUT_PYJWT + RUN, "cannot start: OAUTHBEARER needs PyJWT, and jwt is missing: pip install 'strandline"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 1
        assert why in done.stderr and said in done.stderr
        assert PASSWORD not in done.stderr
        path.chmod(0o600)
        said = ""
