"""A real node behind a terminator of TLS: brokers have none of their own."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.client_topics import batch_of, records_in
from tests.unit.client.certificates import make_authority, make_certificate

from strandline.cli.commands import app
from strandline.client.admin.topics import create_topic
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import StrandlineError
from strandline.client.producing import Producer
from strandline.testing.local_cluster import HOST, LocalCluster, free_ports


@pytest.fixture
def terminated(tmp_path: Path) -> Iterator[tuple[LocalCluster, int, Path]]:
    """A node that tells clients the terminator's port, and that port."""
    make_authority(tmp_path)
    make_certificate(tmp_path, "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    (port,) = free_ports(1)
    told = {"advertised.listeners": f"PLAINTEXT://{HOST}:{port}"}
    with LocalCluster(tmp_path / "nodes", 1, properties=told) as nodes, socket.create_server((HOST, port)) as listener:
        thread = threading.Thread(target=accept, args=(listener, context, nodes.nodes[0].port), daemon=True)
        thread.start()
        yield nodes, port, tmp_path
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def accept(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError):
        while True:
            plain = listener.accept()[0]
            threading.Thread(target=terminate, args=(plain, context, port), daemon=True).start()


def terminate(plain: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with (
        suppress(OSError),
        plain,
        context.wrap_socket(plain, server_side=True) as near,
        socket.create_connection((HOST, port)) as far,
    ):
        there = threading.Thread(target=pass_on, args=(near, far), daemon=True)
        there.start()
        pass_on(far, near)
        there.join(5)


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(1 << 16):
            target.sendall(piece)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def test_everything_goes_through_tls(terminated: tuple[LocalCluster, int, Path]) -> None:
    """Several requests in flight, and answers larger than any buffer of TLS."""
    _, port, folder = terminated
    config = ClientConfig.of(
        {
            "kafka.bootstrap.servers": f"{HOST}:{port}",
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.location": str(folder / "ca.pem"),
            "kafka.ssl.truststore.type": "PEM",
        }
    )
    values = [b"%04d" % i + bytes(5000) for i in range(1000)]
    with Cluster(config) as cluster:
        with Producer(cluster, creates_topics=True) as producer:
            for start in range(0, 1000, 50):
                producer.send("t", 0, batch_of(values[start : start + 50]))
            producer.flush()
        assert [record.value for record in records_in(cluster, "t")] == values


def test_admin_commands_go_through_tls_also_to_single_brokers(
    terminated: tuple[LocalCluster, int, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    nodes, port, folder = terminated
    create_topic(nodes.bootstrap, "t", 1)
    config = folder / "admin.properties"
    config.write_text(f"security.protocol=SSL\nssl.truststore.location={folder}/ca.pem\nssl.truststore.type=PEM\n")
    at = ("--bootstrap-server", f"{HOST}:{port}", "--command-config", str(config))
    assert run("explain t", *at) == 0
    assert run("losses", *at) == 0
    run("topics describe t", *at)
    run("reassignments list", *at)
    run("log-dirs describe", *at)
    run("features describe", *at)
    run("configs describe --entity-type brokers --entity-name 1 --all", *at)
    assert run("transactions list", *at) == 0
    assert run("transactions find-hanging", *at) == 0
    run("transactions producers --topic t --partition 0", *at)
    shown = capsys.readouterr().out
    assert "t-0: healthy" in shown
    assert "1 of 1 brokers asked" in shown
    with pytest.raises(StrandlineError, match="no cluster answers"):
        run("topics list", *at[:2])


def run(command: str, *options: str) -> Any:
    return app([*command.split(), *options], result_action="return_value")
