"""How admin commands reach a cluster: --bootstrap-server and --command-config."""

from pathlib import Path

import pytest
from tests.unit.client.test_sasl import asking

from strandline.cli.connect import Cluster
from strandline.client.admin.topics import live_brokers
from strandline.client.ask import PLAIN, ask_any, config_of
from strandline.client.errors import AuthenticationFailed, BadOption
from strandline.wire.messages.topics.metadata import MetadataRequest

CREDENTIALS = """
# as Kafka's own commands take it
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  username="alice" password="s3cret,=ü";
bootstrap.servers=elsewhere:1
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "admin.properties"
    path.write_text(text)
    return path


@pytest.mark.parametrize("version", [None, 9])
def test_a_command_shows_who_it_is_as_its_file_says_and_asks_where_the_command_line_says(
    tmp_path: Path, version: int | None
) -> None:
    with asking("PLAIN") as broker:
        cluster = Cluster(f"127.0.0.1:{broker.port}", written(tmp_path, CREDENTIALS))
        assert len(ask_any(cluster.config, MetadataRequest(topics=()), version).brokers) == 1
        (found,) = live_brokers(cluster.config).values()
        assert found.config is cluster.config
        assert cluster.options == f" --bootstrap-server {cluster.bootstrap} --command-config {cluster.command_config}"
        wrong = Cluster(cluster.bootstrap, written(tmp_path, CREDENTIALS.replace("s3cret", "guess")))
        with pytest.raises(AuthenticationFailed, match="refuses user alice"):
            ask_any(wrong.config, MetadataRequest(topics=()), version)


def test_a_file_with_a_key_that_nobody_knows_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "securityprotocol=SSL")
    with pytest.raises(BadOption, match=f"{path}: there is no option kafka.securityprotocol"):
        _ = Cluster(command_config=path).config


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _ = Cluster(command_config=tmp_path / "none").config
    assert "none cannot be read: No such file" in capsys.readouterr().err


def test_without_a_file_nodes_are_asked_as_the_text_says() -> None:
    assert config_of("[::1]:9093, h").bootstrap == (("::1", 9093), ("h", 9092))
    assert config_of("h:1").security_protocol == PLAIN.security_protocol
    assert Cluster().options == ""
    with pytest.raises(BadOption, match="'h:port' is not host:port"):
        config_of("h:port")
