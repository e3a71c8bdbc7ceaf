"""A certificate authority of a local cluster, and what it signs, made by the program `openssl`.

Keys are of the curve P-256, which every client knows. All files are PEM; those with a private key have mode 0600.
"""

import os
import subprocess
from pathlib import Path

AUTHORITY_DAYS, NODE_DAYS = 3650, 825  # Apple's systems believe no certificate of a server that is valid for longer
RENEWED_S = 30 * 86_400  # before it expires
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
LOCAL = "DNS:localhost,IP:127.0.0.1,IP:::1"


class NoCertificate(Exception):
    """`openssl` is missing, or failed; the message says which."""


def openssl(*arguments: str) -> bool:
    """Whether it did what it was asked. Its files are for their owner alone. Raises NoCertificate if it is missing."""
    try:
        done = subprocess.run(
            ["openssl", *arguments], capture_output=True, text=True, errors="replace", umask=0o077, check=False
        )
    except FileNotFoundError:
        raise NoCertificate("certificates need the program `openssl`, which is not installed") from None
    if done.returncode and arguments[0] == "req":
        raise NoCertificate(f"`openssl {arguments[0]}` failed: {done.stderr.strip()}")
    return done.returncode == 0


def make_authority(certificate: Path, key: Path) -> None:
    """Once: what is there stays."""
    if certificate.exists() and key.exists():
        return
    subject = ("-subj", "/CN=Strandline local authority")
    beside = certificate.with_suffix(".new")
    openssl("req", "-x509", *KEY, "-days", str(AUTHORITY_DAYS), *subject, "-keyout", str(key), "-out", str(beside))
    beside.chmod(0o644)
    beside.replace(certificate)  # it is there when both are


def make_certificate(store: Path, name: str, authority: Path, authority_key: Path) -> None:
    """Key and certificate of a server on this machine, in one file. One that is there stays until it is about to
    expire."""
    if store.exists() and openssl("x509", "-in", str(store), "-noout", "-checkend", str(RENEWED_S)):
        return
    key, request, extensions, made = (store.with_suffix(f".{what}") for what in ("key", "csr", "ext", "crt"))
    extensions.write_text(f"subjectAltName={LOCAL}\nextendedKeyUsage=serverAuth,clientAuth\n")
    openssl("req", *KEY, "-subj", f"/CN={name}", "-keyout", str(key), "-out", str(request))
    signer = ("-CA", str(authority), "-CAkey", str(authority_key), "-CAcreateserial")
    files = ("-in", str(request), "-out", str(made), "-extfile", str(extensions))
    if not openssl("x509", "-req", *files, *signer, "-days", str(NODE_DAYS)):
        raise NoCertificate(f"`openssl x509` could not sign a certificate for {name} with {authority_key}")
    beside = store.with_suffix(".new")
    write_private(beside, key.read_text() + made.read_text())
    beside.replace(store)
    for path in (key, request, extensions, made):
        path.unlink()


def write_private(path: Path, text: str) -> None:
    """A new file that only its owner may read, from its first moment."""
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
