"""PEM: texts with certificates and keys, one after the other, between lines of dashes."""

PEM_MARK = "-----BEGIN "
CERTIFICATES = ("CERTIFICATE-", "TRUSTED CERTIFICATE-", "X509 CERTIFICATE-")
KEYS = ("PRIVATE KEY-", "ENCRYPTED PRIVATE KEY-", "EC PRIVATE KEY-", "RSA PRIVATE KEY-", "DSA PRIVATE KEY-")


def unfolded(pem: str) -> str:
    """PEM in one line of a properties file has `\\n` for its line ends."""
    return pem.replace("\\n", "\n")


def certificates_in(pem: str) -> str:
    """The certificates alone: a file may also have keys and comments, which OpenSSL would stumble over."""
    return blocks_of(pem, CERTIFICATES)


def keys_in(pem: str) -> str:
    return blocks_of(pem, KEYS)


def blocks_of(pem: str, kinds: tuple[str, ...]) -> str:
    assert kinds
    parts = [part for part in pem.split(PEM_MARK)[1:] if part.startswith(kinds) and "-----" in part]
    return "".join(PEM_MARK + part[: part.rindex("-----") + 5] + "\n" for part in parts)
