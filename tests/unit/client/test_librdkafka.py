"""One properties file for all commands: what librdkafka is told of it."""

from pathlib import Path
from typing import Any

import pytest
from tests.rows import each
from tests.unit.client.certificates import make_authority, make_certificate

from strandline.client.ask import config_of
from strandline.client.librdkafka import client_config, security_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_authority(folder)
    make_certificate(folder, "client")
    return folder


@each(
    ("given", "expected"),
    [
        ({}, {}),
        ({"ssl.truststore.location": "{ca.pem}"}, {}),  # of no use without TLS
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "{ca.pem}"},
            {
                "security.protocol": "SSL",
                "ssl.ca.pem": "{ca.pem}",
                "enable.ssl.certificate.verification": True,
                "ssl.endpoint.identification.algorithm": "https",
            },
        ),
        (
            {
                "security.protocol": "ssl",
                "ssl.keystore.location": "{client.store}",
                "ssl.key.password": "p",
                "ssl.endpoint.identification.algorithm": "",
                "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            },
            {
                "security.protocol": "SSL",
                "ssl.certificate.pem": "{client.pem}",
                "ssl.key.pem": "{client.key}",
                "ssl.key.password": "p",
                "enable.ssl.certificate.verification": True,
                "ssl.endpoint.identification.algorithm": "none",
                "ssl.cipher.suites": "ECDHE-ECDSA-AES256-GCM-SHA384",
            },
        ),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.jaas.config": 'x.ScramLoginModule required username="u" password="p";',
            },
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": "u",
                "sasl.password": "p",
            },
        ),
    ],
)
def test_javas_properties_become_librdkafkas(folder: Path, given: dict[str, str], expected: dict[str, Any]) -> None:
    def path(value: str) -> str:
        return str(folder / value[1:-1]) if value.startswith("{") else value

    def text(value: Any) -> Any:
        is_file = isinstance(value, str) and value.startswith("{")
        return (folder / value[1:-1]).read_text() if is_file else value

    config = config_of("h:1,[::1]:2", {key: path(value) for key, value in given.items()})
    assert security_of(config) == {key: text(value) for key, value in expected.items()}
    whole = client_config(config, acks="all")
    assert (whole["bootstrap.servers"], whole["acks"]) == ("h:1,[::1]:2", "all")
    assert whole.items() >= security_of(config).items()
    assert client_config("h:1")["bootstrap.servers"] == "h:1"
