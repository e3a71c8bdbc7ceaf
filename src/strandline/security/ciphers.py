"""Cipher suites as Java and IANA name them, for OpenSSL, which has names of its own and takes lists of TLS 1.2 alone.

A suite belongs to one version of TLS. A list of Java's names says which versions there may be; those of TLS 1.3 cannot
be chosen one by one: OpenSSL offers all three. A list in OpenSSL's own words says nothing of TLS 1.3.
"""

import re

TLS12, TLS13 = "TLSv1.2", "TLSv1.3"
JAVA_MARK = "TLS_"
OF_TLS13 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")


def suites(text: str) -> tuple[str, tuple[str, ...]]:
    """OpenSSL's list for TLS 1.2 (empty: its own choice), and the versions that the names leave."""
    names = [name for name in re.split(r"[\s,:]+", text) if name]
    if not any(name.startswith(JAVA_MARK) for name in names):
        return ":".join(names), (TLS12, TLS13)
    older = [openssl_name(name) for name in names if "_WITH_" in name or not name.startswith(JAVA_MARK)]
    newer = [name for name in names if name in OF_TLS13]
    return ":".join(older), (TLS12,) * bool(older) + (TLS13,) * bool(newer)


def openssl_name(name: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256 is ECDHE-RSA-AES128-SHA256 there."""
    keys, between, cipher = name.removeprefix(JAVA_MARK).partition("_WITH_")
    if not between:
        return name
    cipher = cipher.removesuffix("_SHA256") if cipher.startswith("CHACHA20") else cipher.replace("_CBC", "")
    cipher = re.sub(r"^AES_(\d+)", r"AES\1", cipher).replace("CCM_8", "CCM8")
    return f"{'' if keys == 'RSA' else keys + '_'}{cipher}".replace("_", "-")
