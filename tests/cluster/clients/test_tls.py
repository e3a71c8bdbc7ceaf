"""Listeners with TLS on real nodes, and every client and command with them: let in, and not let in.

One node has four of them, each with its own settings: SSL, MUTUAL (clients need a certificate), EXPIRED and ELSEWHERE
(the certificate is another host's).
"""

import asyncio
import json
import shutil
import ssl
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from tests.cluster.client_topics import batch_of, records_in
from tests.cluster.commanding import strandline
from tests.cluster.driving import until
from tests.unit.client.certificates import make_authority, make_certificate

from strandline.client.ask import ask, config_of
from strandline.client.cluster import Cluster
from strandline.client.errors import Unreachable
from strandline.client.producing import Producer as OwnProducer
from strandline.testing.local_cluster import HOST, LocalCluster, free_ports
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from kafka import KafkaConsumer, KafkaProducer

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]

NAMES = ("SSL", "MUTUAL", "EXPIRED", "ELSEWHERE")
LINES = [b"one", b"two", b"three" * 50_000]


class Secured(NamedTuple):
    cluster: LocalCluster
    folder: Path
    at: dict[str, str]  # the address of each listener

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def librdkafka(self, listener: str = "SSL", certificate: str = "") -> dict[str, Any]:
        own = {"ssl.certificate.location": f"{certificate}.pem", "ssl.key.location": f"{certificate}.key"}
        return {
            "bootstrap.servers": self.at[listener],
            "security.protocol": "SSL",
            "ssl.ca.location": self.file("ca.pem"),
            **({key: self.file(name) for key, name in own.items()} if certificate else {}),
        }

    def context(self, certificate: str = "") -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.file("ca.pem"))
        if certificate:
            context.load_cert_chain(self.file(f"{certificate}.store"))
        return context

    def properties(self, certificate: str = "", authority: str = "ca") -> dict[str, str]:
        """Kafka's, for our own client and the commands."""
        found = {"security.protocol": "SSL", "ssl.truststore.location": self.file(f"{authority}.pem")}
        return found | ({"ssl.keystore.location": self.file(f"{certificate}.store")} if certificate else {})

    def log(self) -> str:
        return self.cluster.nodes[0].log_path.read_text()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    make_authority(folder)
    make_authority(folder, "stranger")
    for name in ("server", "next", "client"):
        make_certificate(folder, name)
    make_certificate(folder, "expired", days=-1)
    make_certificate(folder, "elsewhere", "DNS:elsewhere.example")
    (folder / "node.store").write_bytes((folder / "server.store").read_bytes())
    (folder / "node.store").chmod(0o600)
    ports = free_ports(len(NAMES) + 1)
    at = dict(zip(NAMES, (f"{HOST}:{port}" for port in ports), strict=False))
    advertised = ",".join(f"{name}://{address}" for name, address in at.items())
    properties = {
        "listeners": f"{advertised},CONTROLLER://{HOST}:{ports[-1]}",
        "advertised.listeners": advertised,
        "listener.security.protocol.map": ",".join(f"{name}:SSL" for name in (*NAMES, "CONTROLLER")),
        "ssl.keystore.location": str(folder / "node.store"),
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.expired.ssl.keystore.location": str(folder / "expired.store"),
        "listener.name.elsewhere.ssl.keystore.location": str(folder / "elsewhere.store"),
    }
    client = {"security.protocol": "SSL", "ssl.truststore.location": str(folder / "ca.pem")}
    nodes = LocalCluster(
        folder / "nodes", 1, ports=[ports[0], ports[-1]], properties=properties, protocol="SSL", client=client
    )
    with nodes:
        yield Secured(nodes, folder, at)


def through_confluent(secured: Secured, listener: str, certificate: str, topic: str) -> list[bytes | None]:
    producer = Producer(secured.librdkafka(listener, certificate))
    for line in LINES:
        producer.produce(topic, line)
    assert producer.flush(20) == 0
    settings = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**secured.librdkafka(listener, certificate), **settings})
    consumer.subscribe([topic])
    found: list[Message] = []
    until(lambda: found.extend(consumer.consume(3, 0.2)) or len(found) == 3)
    consumer.close()
    return [message.value() for message in found]  # type: ignore[misc]


def through_aiokafka(secured: Secured, listener: str, certificate: str, topic: str) -> list[bytes]:
    options = {
        "bootstrap_servers": secured.at[listener],
        "security_protocol": "SSL",
        "ssl_context": secured.context(certificate),
    }

    async def through() -> list[bytes]:
        async with AIOKafkaProducer(**options) as producer:
            for line in LINES:
                await producer.send_and_wait(topic, line)
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **options) as consumer:
            return [(await consumer.getone()).value for _ in LINES]

    return asyncio.run(asyncio.wait_for(through(), 30))


def through_kafka_python(secured: Secured, listener: str, certificate: str, topic: str) -> list[bytes]:
    options = {
        "bootstrap_servers": secured.at[listener],
        "security_protocol": "SSL",
        "ssl_context": secured.context(certificate),
        "metadata_max_age_ms": 1000,
    }
    producer = KafkaProducer(**options)
    for line in LINES:
        producer.send(topic, line).get(20)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=20_000, **options)
    found = [next(consumer).value for _ in LINES]
    consumer.close()
    return found


def through_our_client(secured: Secured, listener: str, certificate: str, topic: str) -> list[bytes | None]:
    with Cluster(config_of(secured.at[listener], secured.properties(certificate))) as cluster:
        with OwnProducer(cluster, creates_topics=True) as producer:
            producer.send(topic, 0, batch_of(LINES))
            producer.flush()
        return [record.value for record in records_in(cluster, topic)]


CLIENTS = [through_confluent, through_aiokafka, through_kafka_python, through_our_client]


@pytest.mark.parametrize("through", CLIENTS)
def test_what_a_client_writes_it_reads_with_a_certificate_and_without(secured: Secured, through: Any) -> None:
    for listener, certificate in (("SSL", ""), ("MUTUAL", "client")):
        topic = f"{through.__name__}-{listener}"
        ask_for(secured, topic)
        assert through(secured, listener, certificate, topic) == LINES


def ask_for(secured: Secured, topic: str) -> None:
    """A topic that is there before anybody subscribes to it."""
    host, _, port = secured.at["SSL"].rpartition(":")
    request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))
    config = config_of(secured.at["SSL"], secured.properties())

    def leads() -> bool:
        (found,) = ask(host, int(port), request, 12, config=config).topics
        return bool(found.partitions) and found.partitions[0].leader_id == 1

    until(leads)


def test_kcat_reads_and_writes_with_tls(secured: Secured) -> None:
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed (apt-get install kcat)")
    options = [
        part for key, value in secured.librdkafka("MUTUAL", "client").items() for part in ("-X", f"{key}={value}")
    ]
    write, read = ["-P", "-t", "kcat"], ["-C", "-t", "kcat", "-e", "-q", "-o", "beginning"]
    subprocess.run(["kcat", *options, *write], input=b"a\nb\n", timeout=30, check=True)
    done = subprocess.run(["kcat", *options, *read], capture_output=True, timeout=30, check=True)
    assert done.stdout == b"a\nb\n"


# --- who is not let in


def problem_of_librdkafka(options: dict[str, Any]) -> str:
    said: list[str] = []
    producer = Producer({**options, "error_cb": lambda error: said.append(error.str()), "log_level": 0})
    until(lambda: producer.poll(0.1) or any("SSL" in text or "ssl" in text for text in said))
    return " / ".join(said)


def problem_of_ours(secured: Secured, listener: str, properties: dict[str, str]) -> str:
    with pytest.raises(Unreachable) as caught, Cluster(config_of(secured.at[listener], properties)) as cluster:
        cluster.brokers()
    return str(caught.value)


@pytest.mark.parametrize(
    ("listener", "certificate", "authority", "librdkafka", "ours", "logged"),
    [
        ("SSL", "", "stranger", "verify", "is not believed", "it does not trust the authority"),
        ("EXPIRED", "", "ca", "verify", "is not believed", "this node's certificate has expired"),
        ("ELSEWHERE", "", "ca", "verify", "not valid for '127.0.0.1'", "it rejects this node's certificate"),
        ("MUTUAL", "", "ca", "certificate required", "required", "it sent no certificate, and ssl.client.auth is"),
        ("MUTUAL", "expired", "ca", "expired", "expired", "its certificate is not accepted: certificate has expired"),
    ],
)
def test_who_is_not_let_in_hears_why_and_so_does_the_operator(
    secured: Secured, listener: str, certificate: str, authority: str, librdkafka: str, ours: str, logged: str
) -> None:
    options = secured.librdkafka(listener, certificate) | {"ssl.ca.location": secured.file(f"{authority}.pem")}
    for problem, expected in (
        (problem_of_librdkafka(options), librdkafka),
        (problem_of_ours(secured, listener, secured.properties(certificate, authority)), ours),
    ):
        assert expected.lower() in problem.lower()
    until(lambda: f"on {listener}: {logged}" in secured.log())


def test_a_plain_client_and_a_node_with_tls_do_not_understand_each_other_and_say_so(secured: Secured) -> None:
    done = strandline("topics", "list", "--bootstrap-server", secured.at["SSL"])
    assert done.returncode == 1
    until(lambda: "on SSL: it does not speak TLS: check its security.protocol" in secured.log())


# --- commands


def test_every_command_goes_through_tls_also_to_single_brokers(secured: Secured, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in secured.properties("client").items()))
    at = ("--bootstrap-server", secured.at["MUTUAL"], "--command-config", str(config))

    def run(command: str) -> str:
        done = strandline(*command.split(), *at)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    run("topics create t --partitions 1 --replication-factor 1")
    assert "t-0: healthy" in run("explain t")
    assert "t" in run("topics list")
    assert "1 of 1 brokers asked" in run("losses")
    for command in ("topics describe t", "reassignments list", "log-dirs describe", "features describe"):
        run(command)
    run("transactions find-hanging")
    run("transactions list")
    run("transactions producers --topic t --partition 0")
    described = run("configs describe --entity-type brokers --entity-name 1 --all")
    assert "listener.name.mutual.ssl.client.auth" in described
    assert "PRIVATE KEY" not in described
    send = subprocess.run(
        [sys.executable, "-m", "strandline", "produce", "t", *at],
        input=b"a\nb\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert send.returncode == 0, send.stderr
    assert run("consume t --from-beginning --max-messages 2") == "a\nb\n"
    peer = f"--peer {secured.at['SSL']} --peer-command-config {config}"
    both = json.loads(run(f"bench connections --seconds 0.2 --threads 2 --rounds 2 --json {peer}"))
    assert [one["bootstrap"] for one in both["results"]] == [secured.at["MUTUAL"], secured.at["SSL"]] * 2
    assert all(one["count"] > 0 and not one["errors"] for one in both["results"]) and both["ratio"] > 0
    assert "MB/s" in run("bench --replication-factor 1 --seconds 0.2 --warmup 0 --consume")


# --- certificates that change


def served_by(secured: Secured) -> str:
    host, _, port = secured.at["SSL"].rpartition(":")
    return ssl.get_server_certificate((host, int(port)))


def test_a_certificate_changes_under_load_and_no_record_is_missing(secured: Secured) -> None:
    failed: list[KafkaError] = []
    delivered, ended = [0], threading.Event()

    def load() -> None:
        producer = Producer({**secured.librdkafka(), "linger.ms": 1, "enable.idempotence": True})

        def noted(error: KafkaError | None, message: Message) -> None:
            failed.extend([] if error is None else [error])
            delivered[0] += 1

        while not ended.is_set():
            producer.produce("load", b"x" * 1000, on_delivery=noted)
            producer.poll(0.001)
        failed.extend([] if producer.flush(20) == 0 else [KafkaError(KafkaError._TIMED_OUT)])

    store, first = secured.folder / "node.store", served_by(secured)
    thread = threading.Thread(target=load)
    thread.start()
    try:
        until(lambda: delivered[0] > 100)
        store.write_text("not a certificate")
        until(lambda: "new certificates of listener SSL cannot be used, the old ones stay" in secured.log())
        assert served_by(secured) == first
        replaced = secured.folder / "replaced.store"
        replaced.write_bytes((secured.folder / "next.store").read_bytes())
        replaced.rename(store)
        until(lambda: served_by(secured) != first)
        at = delivered[0]
        until(lambda: delivered[0] > at + 100)
        # A running broker is given another file (KIP-226).
        name = "listener.name.ssl.ssl.keystore.location"
        set_on_broker(secured, name, secured.file("server.store"))
        until(lambda: served_by(secured) == first)
        set_on_broker(secured, name, None)
        until(lambda: served_by(secured) != first)
    finally:
        ended.set()
        thread.join(30)
    assert failed == []


def set_on_broker(secured: Secured, name: str, value: str | None) -> None:
    host, _, port = secured.at["SSL"].rpartition(":")
    change = AlterableConfig(name=name, config_operation=0 if value else 1, value=value)
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=(change,))
    request = IncrementalAlterConfigsRequest(resources=(resource,))
    config = config_of(secured.at["SSL"], secured.properties())
    (answer,) = ask(host, int(port), request, 1, config=config).responses
    assert answer.error_code == 0, answer.error_message


# --- between nodes


def test_three_nodes_with_tls_everywhere_survive_their_leader(secured: Secured, tmp_path: Path) -> None:
    """Each node verifies each other one, whose certificate is required, by brokers' and by controllers' listeners."""
    properties = {
        "listener.security.protocol.map": "SSL:SSL,CONTROLLER:SSL",
        "ssl.client.auth": "required",
        "ssl.keystore.location": secured.file("server.store"),
        "ssl.truststore.location": secured.file("ca.pem"),
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }
    client = secured.properties("client")
    with LocalCluster(tmp_path / "three", 3, properties=properties, protocol="SSL", client=client) as cluster:
        options = {**secured.librdkafka("SSL", "client"), "bootstrap.servers": cluster.bootstrap, "log_level": 0}
        producer = Producer({**options, "acks": "all", "enable.idempotence": True})
        config = config_of(cluster.bootstrap, client)
        done: list[KafkaError | None] = []

        def write(count: int) -> None:
            before = len(done)
            for number in range(count):
                producer.produce("t", b"%d" % number, on_delivery=lambda error, _: done.append(error))
            until(lambda: (producer.poll(0.1) and False) or len(done) == before + count, 40)

        write(100)
        request = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
        (topic,) = ask(HOST, cluster.nodes[0].port, request, 12, config=config).topics
        leader = topic.partitions[0].leader_id
        cluster.node(leader).kill()
        write(100)
        assert done == [None] * 200
        cluster.node(leader).start()
        other = next(node for node in cluster.nodes if node.node_id != leader)

        def in_sync() -> int:
            (found,) = ask(HOST, other.port, request, 12, config=config).topics
            return len(found.partitions[0].isr_nodes)

        until(lambda: in_sync() == 3, 30)
        with Cluster(config) as whole:
            assert len(records_in(whole, "t")) == 200
