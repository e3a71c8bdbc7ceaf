"""One record, written with the code of `strandline produce`."""

import base64

from msgspec import Struct

from strandline.client.admin.topics import partitions_of
from strandline.client.errors import BadOption, StrandlineError
from strandline.console.facts import Observed
from strandline.console.table import Json
from strandline.console.view import Change

ANY = -1
HEADERS_MAX = 100


class Header(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    value: str | None = None


class NewRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """`partition` -1: the partitioner chooses it. `key_as`, `value_as`: "text", "hex", "base64", or "null"."""

    topic: str
    partition: int = ANY
    key: str = ""
    key_as: str = "null"
    value: str = ""
    value_as: str = "text"
    headers: tuple[Header, ...] = ()


def bytes_of(text: str, given_as: str) -> bytes | None:
    """Raises BadOption."""
    try:
        match given_as:
            case "null":
                return None
            case "text":
                return text.encode()
            case "hex":
                return bytes.fromhex(text)
            case "base64":
                return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise BadOption(f"this is not {given_as}: {error}") from None
    raise BadOption(f"'{given_as}' is not text, hex, base64 or null")


def checked(observed: Observed, wanted: NewRecord) -> list[int]:
    """The topic's partitions. Raises BadOption, and StrandlineError if there is no such topic: it is not created."""
    if len(wanted.headers) > HEADERS_MAX or any(not header.name for header in wanted.headers):
        raise BadOption(f"a record has at most {HEADERS_MAX} headers here, and each has a name")
    known = partitions_of(observed.config, wanted.topic)
    if not known:
        raise StrandlineError(f"topic '{wanted.topic}' does not exist")
    if wanted.partition != ANY and wanted.partition not in known:
        raise BadOption(f"there is no partition {wanted.partition}", f"there are 0 to {max(known)}")
    return known


def plan(observed: Observed, wanted: NewRecord) -> Json:
    key, value = bytes_of(wanted.key, wanted.key_as), bytes_of(wanted.value, wanted.value_as)
    known = checked(observed, wanted)
    where = f"partition {wanted.partition}" if wanted.partition != ANY else f"one of {len(known)} partitions"
    what = "no value, a tombstone" if value is None else f"a value of {sized(value)}"
    named = "no key" if key is None else f"a key of {sized(key)}"
    return {"lines": [f"A record with {named} and {what} would be written to {where} of {wanted.topic}."]}


def sized(content: bytes) -> str:
    return f"{len(content)} byte{'' if len(content) == 1 else 's'}"


def write(observed: Observed, wanted: NewRecord) -> Json:
    key, value = bytes_of(wanted.key, wanted.key_as), bytes_of(wanted.value, wanted.value_as)
    checked(observed, wanted)
    try:
        from strandline.client.librdkafka import write_one
    except ImportError:
        raise StrandlineError("producing needs confluent-kafka", "pip install 'strandline[clients]'") from None
    headers = [(one.name, None if one.value is None else one.value.encode()) for one in wanted.headers]
    written = write_one(observed.config, wanted.topic, value, key, headers, wanted.partition)
    return {"partition": written.partition, "offset": written.offset}


RECORD = Change(NewRecord, plan, write, private=("key", "value", "headers"))
