"""What a node reads out of a certificate (X.509 in DER): its subject, and until when it is valid.

OpenSSL verifies certificates; this only reads those that it has verified, or that are the node's own. Bytes that are
not a certificate raise ValueError.
"""

import re
from collections.abc import Iterator

from strandline.base.value import Value

SEQUENCE, OBJECT_IDENTIFIER, VERSION = 0x30, 0x06, 0xA0
UTC_TIME, GENERALIZED_TIME = 0x17, 0x18
LONG_FORM = 0x80
TIME = re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z")


class Attribute(Value, frozen=True):
    """One part of a name. `content` is what follows the tag and the length of its value; `tag` says what it is."""

    oid: str
    tag: int
    content: bytes


RelativeNames = tuple[tuple[Attribute, ...], ...]  # in the certificate's order: the most general first


class Certificate(Value, frozen=True):
    subject: RelativeNames
    not_after: str  # ISO 8601, UTC: texts of it compare as the times do


def read_certificate(der: bytes) -> Certificate:
    (_, whole), *_ = list(elements(der))
    (_, signed), *_ = list(elements(whole))
    fields = [content for tag, content in elements(signed) if tag != VERSION]
    if len(fields) < 5:
        raise ValueError("not a certificate: fields are missing")
    _, _, _, validity, subject = fields[:5]  # serial number, signature algorithm, issuer, …
    times = list(elements(validity))
    if len(times) != 2:
        raise ValueError("not a certificate: no validity")
    return Certificate(
        subject=tuple(tuple(attributes(content)) for _, content in elements(subject)), not_after=time_of(*times[1])
    )


def elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element, one after the other."""
    at = 0
    while at < len(der):
        if at + 2 > len(der):
            raise ValueError("not DER: it ends in an element")
        tag, length = der[at], der[at + 1]
        at += 2
        if length & LONG_FORM:
            size = length & ~LONG_FORM
            if not 0 < size <= 4 or at + size > len(der):
                raise ValueError("not DER: a length without an end")
            length = int.from_bytes(der[at : at + size], "big")
            at += size
        if at + length > len(der):
            raise ValueError("not DER: it ends in an element")
        yield tag, der[at : at + length]
        at += length


def attributes(der: bytes) -> Iterator[Attribute]:
    for _, pair in elements(der):
        parts = list(elements(pair))
        if len(parts) != 2 or parts[0][0] != OBJECT_IDENTIFIER or not parts[0][1]:
            raise ValueError("not a certificate: a name without a type")
        yield Attribute(oid_of(parts[0][1]), *parts[1])


def oid_of(content: bytes) -> str:
    assert content
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2) if numbers else 0
    if not numbers:
        raise ValueError("not DER: an object identifier without an end")
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def time_of(tag: int, content: bytes) -> str:
    if tag == UTC_TIME:  # two digits of the year: 50 to 99 are of the last century (RFC 5280)
        content = (b"19" if content[:1] >= b"5" else b"20") + content
    match = TIME.fullmatch(content) if tag in (UTC_TIME, GENERALIZED_TIME) else None
    if match is None:
        raise ValueError("not a certificate: no time")
    year, month, day, hour, minute, second = (part.decode() for part in match.groups())
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}Z"
