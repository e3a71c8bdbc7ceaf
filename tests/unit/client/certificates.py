"""A certificate authority for tests, and what it signs."""

import subprocess
from pathlib import Path

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def openssl(*arguments: str) -> str:
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True).stdout


def make_authority(folder: Path, name: str = "ca") -> None:
    """NAME.pem and NAME.key."""
    files = ("-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem"))
    openssl("req", "-x509", *KEY, "-days", "30", "-subj", f"/CN={name}", *files)


def make_certificate(
    folder: Path,
    name: str,
    alternative: str = "IP:127.0.0.1",
    authority: str = "ca",
    *,
    subject: str = "",
    days: int = 30,
) -> None:
    """NAME.pem and NAME.key, signed by the authority for this host; and NAME.store with both. Below 0 days it has
    expired."""
    request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
    extensions.write_text(f"subjectAltName={alternative}\n")
    files = ("-keyout", str(folder / f"{name}.key"), "-out", str(request))
    openssl("req", *KEY, "-utf8", "-subj", subject or f"/CN={name}", *files)
    signer = ("-CA", str(folder / f"{authority}.pem"), "-CAkey", str(folder / f"{authority}.key"), "-CAcreateserial")
    made = ("-out", str(folder / f"{name}.pem"), "-extfile", str(extensions))
    openssl("x509", "-req", "-in", str(request), *signer, "-days", str(days), *made)
    store = folder / f"{name}.store"
    store.touch(0o600)
    store.write_text((folder / f"{name}.key").read_text() + (folder / f"{name}.pem").read_text())
