"""Into an SSL context: a certificate chain with its key, and whom it trusts. Servers and clients share it.

OpenSSL reads private keys from files only. They go there in a file that exists in memory alone, where the system has
such files; elsewhere in one that nobody else may read, and that is deleted at once.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from strandline.base.secret import Secret
from strandline.security.ciphers import TLS12, TLS13
from strandline.security.pem import certificates_in, keys_in

VERSIONS = {TLS12: ssl.TLSVersion.TLSv1_2, TLS13: ssl.TLSVersion.TLSv1_3}


def load_own(context: ssl.SSLContext, chain: str, key: Secret, password: Secret | None) -> None:
    """Texts are PEM. Raises ssl.SSLError, or ValueError, if they are not usable or do not belong together."""
    content = f"{keys_in(key.reveal)}\n{certificates_in(chain)}"
    with readable_once(content.encode("ascii", "replace")) as path:
        # Without a password OpenSSL would ask for it at the terminal.
        context.load_cert_chain(path, password=password.reveal if password is not None else "")


def load_trusted(context: ssl.SSLContext, authorities: str) -> None:
    """`authorities`: PEM; empty: those of the system. Raises ssl.SSLError."""
    if authorities:
        context.load_verify_locations(cadata=certificates_in(authorities))
    else:
        context.load_default_certs()


def limit_versions(context: ssl.SSLContext, versions: tuple[str, ...]) -> None:
    assert versions
    context.minimum_version = VERSIONS[min(versions)]
    context.maximum_version = VERSIONS[max(versions)]


@contextmanager
def readable_once(content: bytes) -> Iterator[str]:
    """The path of a file with this content, for as long as the block lasts."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("strandline")
        try:
            write_all(file, content)
            yield f"/proc/self/fd/{file}"
        finally:
            os.close(file)
        return
    with tempfile.TemporaryDirectory(prefix="strandline-") as folder:
        path = os.path.join(folder, "own.pem")
        file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            write_all(file, content)
        finally:
            os.close(file)
        yield path


def write_all(file: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]
