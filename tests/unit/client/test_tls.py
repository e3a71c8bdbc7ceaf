"""TLS: who is believed, who we are, and what a user is told when either fails."""

import re
import ssl
from pathlib import Path

import pytest
from tests.unit.client.certificates import make_authority, make_certificate, openssl
from tests.unit.client.scripted import ScriptedBroker

from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import BadOption, Unreachable
from strandline.client.security.tls import Tls, context_of
from strandline.security.ciphers import openssl_name, suites


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_authority(folder)
    make_authority(folder, "stranger")
    make_certificate(folder, "server")
    make_certificate(folder, "elsewhere", "DNS:elsewhere.example")
    make_certificate(folder, "client")
    return folder


def serving(folder: Path, name: str = "server", *, asks_clients: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    if asks_clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(folder / "ca.pem")
    return context


def brokers_of(broker: ScriptedBroker, **options: str) -> list[int]:
    given = {f"kafka.{key.replace('_', '.')}": value for key, value in options.items()}
    servers = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}", "kafka.security.protocol": "SSL"}
    with Cluster(ClientConfig.of({**servers, **given})) as cluster:
        return list(cluster.brokers())


@pytest.mark.parametrize("key", ["ssl_truststore_location", "ssl_ca_location"])
def test_a_broker_whose_authority_is_believed_is_spoken_to(certificates: Path, key: str) -> None:
    with ScriptedBroker(tls=serving(certificates)) as broker:
        assert brokers_of(broker, **{key: str(certificates / "ca.pem")}) == [1]


def test_certificates_may_stand_in_the_options(certificates: Path) -> None:
    pem = (certificates / "ca.pem").read_text()
    with ScriptedBroker(tls=serving(certificates)) as broker:
        assert brokers_of(broker, ssl_truststore_certificates=pem, ssl_truststore_type="PEM") == [1]
        assert brokers_of(broker, ssl_truststore_certificates=pem.replace("\n", "\\n")) == [1]


def test_a_stranger_is_not_believed(certificates: Path) -> None:
    with ScriptedBroker(tls=serving(certificates)) as broker, pytest.raises(Unreachable, match="is not believed"):
        brokers_of(broker, ssl_ca_location=str(certificates / "stranger.pem"))


def test_a_certificate_for_another_host_is_refused_unless_hosts_are_not_looked_at(certificates: Path) -> None:
    ca = str(certificates / "ca.pem")
    with ScriptedBroker(tls=serving(certificates, "elsewhere")) as broker:
        with pytest.raises(Unreachable, match=r"not valid for '127\.0\.0\.1'"):
            brokers_of(broker, ssl_ca_location=ca)
        assert brokers_of(broker, ssl_ca_location=ca, ssl_endpoint_identification_algorithm="") == [1]


def test_a_client_certificate_in_one_file_or_two(certificates: Path) -> None:
    ca, own, key = (str(certificates / name) for name in ("ca.pem", "client.pem", "client.key"))
    both = certificates / "both.pem"
    both.write_text(Path(key).read_text() + Path(own).read_text())
    with ScriptedBroker(tls=serving(certificates, asks_clients=True)) as broker:
        assert brokers_of(broker, ssl_ca_location=ca, ssl_certificate_location=own, ssl_key_location=key) == [1]
        assert brokers_of(broker, ssl_truststore_location=ca, ssl_keystore_location=str(both)) == [1]
        with pytest.raises(Unreachable):
            brokers_of(broker, ssl_ca_location=ca)
    with pytest.raises(BadOption, match="needs both its chain and its key"):
        brokers_of(broker, ssl_ca_location=ca, ssl_certificate_location=own)


def test_a_key_with_a_password(certificates: Path) -> None:
    locked = certificates / "locked.key"
    plain = str(certificates / "client.key")
    openssl("ec", "-in", plain, "-aes256", "-passout", "pass:secret", "-out", str(locked))
    chosen = {
        "ssl_ca_location": str(certificates / "ca.pem"),
        "ssl_keystore_certificate_chain": (certificates / "client.pem").read_text(),
        "ssl_keystore_key": locked.read_text(),
    }
    with ScriptedBroker(tls=serving(certificates, asks_clients=True)) as broker:
        assert brokers_of(broker, **chosen, ssl_key_password="secret") == [1]
        with pytest.raises(BadOption, match="not usable") as caught:
            brokers_of(broker, **chosen, ssl_key_password="wrong-one")
        assert "wrong-one" not in str(caught.value)


def test_a_java_key_store_is_refused_with_the_way_to_pem(tmp_path: Path) -> None:
    store = tmp_path / "store.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\x00\x00")
    servers = {"kafka.bootstrap.servers": "h:1", "kafka.security.protocol": "SSL"}
    with pytest.raises(BadOption, match=r"is not PEM \(ssl.truststore.type=JKS\)") as caught:
        ClientConfig.of({**servers, "kafka.ssl.truststore.location": str(store)})
    assert "keytool -importkeystore" in caught.value.advice
    with pytest.raises(BadOption, match=r"cannot read /no/such\.pem: No such file"):
        ClientConfig.of({**servers, "kafka.ssl.ca.location": "/no/such.pem"})


def test_a_broker_without_tls_is_suspected(certificates: Path) -> None:
    with ScriptedBroker() as broker, pytest.raises(Unreachable, match="no TLS with"):
        brokers_of(broker, ssl_ca_location=str(certificates / "ca.pem"))


def test_only_the_versions_that_are_enabled_are_spoken(certificates: Path) -> None:
    ca, newest = str(certificates / "ca.pem"), serving(certificates)
    newest.minimum_version = ssl.TLSVersion.TLSv1_3
    with ScriptedBroker(tls=newest) as broker:
        assert brokers_of(broker, ssl_ca_location=ca, ssl_enabled_protocols="TLSv1.2,TLSv1.3") == [1]
        with pytest.raises(Unreachable):
            brokers_of(broker, ssl_ca_location=ca, ssl_enabled_protocols="TLSv1.2")


JAVAS = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"


def test_a_cipher_suite_of_javas_name_is_the_one_that_is_used(certificates: Path) -> None:
    older, one_only = serving(certificates), serving(certificates)
    older.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    one_only.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    older.maximum_version = one_only.maximum_version = ssl.TLSVersion.TLSv1_2
    chosen = {"ssl_ca_location": str(certificates / "ca.pem"), "ssl_cipher_suites": f"{JAVAS},TLS_AES_128_GCM_SHA256"}
    with ScriptedBroker(tls=older) as broker:
        assert brokers_of(broker, **chosen) == [1]
    with ScriptedBroker(tls=one_only) as broker, pytest.raises(Unreachable):
        brokers_of(broker, **chosen)


def test_each_suite_that_java_has_is_found_by_its_name() -> None:
    """OpenSSL tells both names of each."""
    listed = openssl("ciphers", "-stdname", "ALL:@SECLEVEL=0").splitlines()
    pairs = {row.split()[0]: row.split()[2] for row in listed if "TLSv1.3" not in row}
    kinds = re.compile(r"TLS_((EC)?DHE_(RSA|ECDSA)|RSA)_WITH_(AES|CHACHA20)_.*")
    found = {name: own for name, own in pairs.items() if kinds.fullmatch(name)}
    assert len(found) > 30
    assert {name: openssl_name(name) for name in found} == found


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", ("", ("TLSv1.2", "TLSv1.3"))),
        ("HIGH:!aNULL", ("HIGH:!aNULL", ("TLSv1.2", "TLSv1.3"))),
        (f"{JAVAS}, TLS_AES_128_GCM_SHA256", ("ECDHE-ECDSA-AES256-GCM-SHA384", ("TLSv1.2", "TLSv1.3"))),
        (f"{JAVAS},TLS_EMPTY_RENEGOTIATION_INFO_SCSV", ("ECDHE-ECDSA-AES256-GCM-SHA384", ("TLSv1.2",))),
        ("TLS_AES_256_GCM_SHA384", ("", ("TLSv1.3",))),
        ("TLS_NONE_SUCH", ("", ())),
    ],
)
def test_a_list_of_javas_names_says_which_versions_there_may_be(given: str, expected: tuple[str, list[str]]) -> None:
    assert suites(given) == expected


def test_ciphers_of_no_version_that_is_enabled_are_refused() -> None:
    given = {"kafka.bootstrap.servers": "h:1", "kafka.security.protocol": "SSL", "kafka.ssl.cipher.suites": JAVAS}
    with pytest.raises(BadOption, match=r"kafka.ssl.cipher.suites has no suite of TLSv1.3"):
        ClientConfig.of({**given, "kafka.ssl.enabled.protocols": "TLSv1.3"})
    config = ClientConfig.of({**given, "kafka.ssl.cipher.suites": "NONE-SUCH"})
    with pytest.raises(BadOption, match="OpenSSL has none of NONE-SUCH"):
        context_of(config.tls or Tls())
