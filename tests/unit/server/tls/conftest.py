"""Certificates for all tests of this folder, which do not change them."""

from pathlib import Path

import pytest
from tests.unit.client.certificates import make_authority, make_certificate


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_authority(folder)
    make_authority(folder, "stranger")
    make_certificate(folder, "server")
    make_certificate(folder, "other")
    make_certificate(folder, "elsewhere", "DNS:elsewhere.example")
    make_certificate(folder, "expired", days=-1)
    make_certificate(folder, "soon", days=13)
    make_certificate(folder, "client", subject="/O=Example/OU=Streams/CN=client")
    make_certificate(folder, "unknown", authority="stranger")
    return folder
