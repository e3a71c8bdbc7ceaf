"""The subject of a certificate as text, as Java writes it by RFC 2253: a principal is `User:` and this text.

The most special part stands first: `CN=client,OU=Streams,O=Example`. Only types that RFC 2253 names have short names;
others are dotted numbers, and their values hexadecimal, as is each value that is not a string.
"""

from strandline.security.certificates import Attribute, RelativeNames

SHORT_NAMES = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
# Tags of DER for strings. The last two: Teletex, whose characters are in practice those of Latin 1, and General.
ENCODINGS = {0x0C: "utf-8", 0x13: "ascii", 0x16: "ascii", 0x1E: "utf-16-be", 0x14: "latin-1", 0x1B: "latin-1"}
ESCAPED = frozenset(',=+<>#;"\\')


def text_of(names: RelativeNames) -> str:
    """Raises ValueError for a string that its type cannot be."""
    return ",".join("+".join(map(attribute_text, name)) for name in reversed(names))


def attribute_text(attribute: Attribute) -> str:
    name = SHORT_NAMES.get(attribute.oid)
    encoding = ENCODINGS.get(attribute.tag)
    if name is None or encoding is None:
        der = bytes((attribute.tag,)) + length_of(attribute.content) + attribute.content
        return f"{name or attribute.oid}=#{der.hex()}"
    return f"{name}={escaped(attribute.content.decode(encoding))}"


def length_of(content: bytes) -> bytes:
    if len(content) < 0x80:
        return bytes((len(content),))
    size = len(content).to_bytes(4, "big").lstrip(b"\x00")
    return bytes((0x80 | len(size),)) + size


def escaped(text: str) -> str:
    core = text.strip(" \r\n")
    lead = len(text) - len(text.lstrip(" \r\n"))
    parts = ["\\" + letter for letter in text[:lead]]
    parts += ["\\00" if letter == "\0" else f"\\{letter}" if letter in ESCAPED else letter for letter in core]
    parts += ["\\" + letter for letter in text[lead + len(core) :]]
    return "".join(parts)
