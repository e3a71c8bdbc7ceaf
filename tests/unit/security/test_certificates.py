"""The subject of a certificate as Java writes it (RFC 2253), and its end."""

import ssl
from pathlib import Path

import pytest
from tests.rows import each
from tests.unit.client.certificates import make_authority, make_certificate, openssl

from strandline.security.certificates import Attribute, elements, oid_of, read_certificate, time_of
from strandline.security.distinguished_names import text_of

CN, STREET, EMAIL = "2.5.4.3", "2.5.4.9", "1.2.840.113549.1.9.1"
UTF8, PRINTABLE, IA5, BITS, BMP = 0x0C, 0x13, 0x16, 0x03, 0x1E


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    make_authority(folder)
    return folder


def der_of(folder: Path, name: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert((folder / f"{name}.pem").read_text())


def test_a_subject_is_written_from_its_end_with_javas_short_names(folder: Path) -> None:
    subject = "/C=DE/ST=Bayern/L=München/O=Example, Ltd./OU=Streams+UID=7/CN=client #1/emailAddress=a@b.c"
    make_certificate(folder, "whole", subject=subject)
    found = read_certificate(der_of(folder, "whole"))
    assert text_of(found.subject) == (
        "1.2.840.113549.1.9.1=#16056140622e63,CN=client \\#1,OU=Streams+UID=7,O=Example\\, Ltd.,L=München,"
        "ST=Bayern,C=DE"
    )
    printed = openssl("x509", "-in", str(folder / "whole.pem"), "-noout", "-enddate", "-dateopt", "iso_8601")
    assert found.not_after == printed.strip().removeprefix("notAfter=").replace(" ", "T")


@each(
    ("attribute", "text"),
    [
        (Attribute(CN, UTF8, b" a "), "CN=\\ a\\ "),
        (Attribute(CN, UTF8, b'a=b;"<\\>'), 'CN=a\\=b\\;\\"\\<\\\\\\>'),
        (Attribute(CN, UTF8, b"a\0b"), "CN=a\\00b"),  # it cannot pass for another name
        (Attribute(CN, UTF8, b""), "CN="),
        (Attribute(STREET, PRINTABLE, b"x"), "STREET=x"),
        (Attribute(CN, BMP, "ä".encode("utf-16-be")), "CN=ä"),
        (Attribute(CN, BITS, b"\0\1"), "CN=#03020001"),
        (Attribute(EMAIL, IA5, b"x" * 200), f"{EMAIL}=#1681c8{'78' * 200}"),
    ],
)
def test_what_would_change_the_names_meaning_is_escaped(attribute: Attribute, text: str) -> None:
    assert text_of(((attribute,),)) == text


def test_bytes_that_are_no_certificate_are_refused(folder: Path) -> None:
    make_certificate(folder, "cut")
    der = der_of(folder, "cut")
    for wrong in (
        b"",
        b"\x30",
        b"\x30\x80",
        der[:-1],
        b"\x30\x03\x30\x01\x00",
        b"\x30\x02\x30\x00",
        der[:40] + b"\xff" * 40,
    ):
        with pytest.raises(ValueError):
            read_certificate(wrong)
    with pytest.raises(ValueError, match="no time"):
        time_of(0x17, b"261127")
    with pytest.raises(ValueError, match="without an end"):
        oid_of(b"\x80")
    with pytest.raises(ValueError, match="without an end"):
        list(elements(b"\x30\x85\1\1\1\1\1"))


def test_years_of_two_digits_are_those_of_rfc_5280() -> None:
    assert time_of(0x17, b"491231235959Z") == "2049-12-31T23:59:59Z"
    assert time_of(0x17, b"500101000000Z") == "1950-01-01T00:00:00Z"
    assert time_of(0x18, b"20500101000000Z") == "2050-01-01T00:00:00Z"
