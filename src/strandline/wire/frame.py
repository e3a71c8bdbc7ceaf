"""Frames: the size prefix, the request and response headers, and the message behind them.

A frame on the wire is a four-byte size and that many bytes. The decoding functions take the bytes after the size: the
driver has cut the stream by it. The encoding functions write it.

Headers follow the message's version: a flexible version has request header v2 and response header v1 (tagged fields at
the end), others v1 and v0. Two exceptions: `client_id` stays a legacy string in every header, and ApiVersions' response
always has header v0, since a client that reads it does not yet know what the broker speaks (KIP-511).
"""

from struct import Struct
from typing import TypeVar

from strandline.base.ports import Buffer
from strandline.base.value import Value
from strandline.wire.api import API_BY_KEY, API_VERSIONS
from strandline.wire.codec import Decoder, Encoder, decoder_of, encoder_of
from strandline.wire.primitive import Malformed, read_unsigned
from strandline.wire.schema import Message

__all__ = [
    "Malformed",
    "Request",
    "UnsupportedApi",
    "UnsupportedVersion",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]

M = TypeVar("M", bound=Message)

REQUEST_HEADER = Struct(">hhih")  # api_key, api_version, correlation_id, length of client_id
RESPONSE_HEADER = Struct(">i")
RESPONSE_PREFIX = Struct(">ii")  # the size, and that header
SIZE = Struct(">i")
HEADER_TAGS_MAX = 100
# By API key and version: whether its header has tagged fields, and how it is read. Filled as they come.
READERS: dict[tuple[int, int], tuple[bool, Decoder]] = {}
# By response and version: likewise.
RESPONSE_READERS: dict[tuple[type[Message], int], tuple[bool, Decoder]] = {}
# By response and version: whether its header has tagged fields, and how it is written. Filled likewise.
RESPONSE_WRITERS: dict[tuple[type[Message], int], tuple[bool, Encoder]] = {}
UNCOUNTED_MAX = 256 * 1024  # bytes of a frame that may have as many items as fit in


class Request(Value, frozen=True):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    message: Message


class Unsupported(Exception):
    """A well-formed header that asks for something that we do not speak."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> None:
        super().__init__(f"api key {api_key} version {api_version}")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id


class UnsupportedApi(Unsupported):
    """No such API: the connection can only be closed."""


class UnsupportedVersion(Unsupported):
    """A known API in an unknown version. ApiVersions is answered all the same, in version 0 with error 35."""


def decode_request(frame: memoryview) -> Request:
    """The request in a frame. Raises `Malformed`, `UnsupportedApi` or `UnsupportedVersion`."""
    size, position = len(frame), REQUEST_HEADER.size
    if size < position:
        raise Malformed("truncated request header")
    api_key, api_version, correlation_id, length = REQUEST_HEADER.unpack_from(frame)
    client_id = None
    if length >= 0:
        start, position = position, position + length
        if position > size:
            raise Malformed("client id beyond the end")
        try:
            client_id = str(frame[start:position], "utf-8")
        except UnicodeDecodeError as error:
            raise Malformed(f"client id: {error}") from None
    elif length != -1:
        raise Malformed("negative length of client id")
    reader = READERS.get((api_key, api_version))
    if reader is None:
        api = API_BY_KEY.get(api_key)
        if api is None:
            raise UnsupportedApi(api_key, api_version, correlation_id, client_id)
        if api_version not in api.request.versions:
            raise UnsupportedVersion(api_key, api_version, correlation_id, client_id)
        reader = READERS[api_key, api_version] = reader_of(api.request, api_version)
    is_flexible, decode = reader
    if is_flexible:
        position = _skip_tagged(frame, position)
    if size > UNCOUNTED_MAX:
        decode = decoder_of(API_BY_KEY[api_key].request, api_version, True)
    # Like Kafka, what follows the message is ignored: librdkafka leaves three stray bytes behind a request for the
    # metadata of all topics.
    message, end = decode(frame, position)
    assert end <= size, "a message ends within its frame"
    return Request(api_key, api_version, correlation_id, client_id, message)


def reader_of(cls: type[Message], version: int) -> tuple[bool, Decoder]:
    return version in cls.flexible, decoder_of(cls, version)


def encode_request(message: Message, version: int, correlation_id: int, client_id: str | None) -> list[Buffer]:
    """A request with its size prefix, as buffers to be written one after the other."""
    assert message.kind == "request"
    name = b"" if client_id is None else client_id.encode()
    head = bytearray(SIZE.size)
    head += REQUEST_HEADER.pack(message.api_key, version, correlation_id, -1 if client_id is None else len(name))
    head += name
    if version in message.flexible:
        head.append(0)
    return _framed(message, encoder_of(type(message), version), head)


def encode_response(message: Message, version: int, correlation_id: int) -> list[Buffer]:
    """A response with its size prefix, as buffers to be written one after the other."""
    assert message.kind == "response"
    is_tagged, encode = RESPONSE_WRITERS.get((type(message), version)) or writer_of(type(message), version)
    head = bytearray(RESPONSE_PREFIX.pack(0, correlation_id))
    if is_tagged:
        head.append(0)
    return _framed(message, encode, head)


def decode_response(cls: type[M], version: int, frame: memoryview) -> tuple[int, M]:
    """The correlation id and the response in a frame."""
    assert cls.kind == "response"
    if len(frame) < RESPONSE_HEADER.size:
        raise Malformed("truncated response header")
    (correlation_id,) = RESPONSE_HEADER.unpack_from(frame, 0)
    position = RESPONSE_HEADER.size
    is_tagged, decode = RESPONSE_READERS.get((cls, version)) or response_reader_of(cls, version)
    if is_tagged:
        position = _skip_tagged(frame, position)
    message, position = decode(frame, position)
    if position != len(frame):
        raise Malformed(f"{cls.__name__} v{version}: {len(frame) - position} bytes too many")
    return correlation_id, message


def build_codecs() -> None:
    """For processes that fork often: all messages' codecs, which are built when they are first used."""
    for api in API_BY_KEY.values():
        for cls in (api.request, api.response):
            for version in cls.versions:
                decoder_of(cls, version)
                encoder_of(cls, version)


def has_tagged_response_header(cls: type[Message], version: int) -> bool:
    """Is it response header v1, with tagged fields at its end?"""
    return version in cls.flexible and cls.api_key != API_VERSIONS


def response_reader_of(cls: type[Message], version: int) -> tuple[bool, Decoder]:
    found = RESPONSE_READERS[cls, version] = has_tagged_response_header(cls, version), decoder_of(cls, version)
    return found


def writer_of(cls: type[Message], version: int) -> tuple[bool, Encoder]:
    found = RESPONSE_WRITERS[cls, version] = has_tagged_response_header(cls, version), encoder_of(cls, version)
    return found


def _framed(message: Message, encode: Encoder, head: bytearray) -> list[Buffer]:
    """Put the message behind the head, and fill in the size, for which that has room."""
    chunks = encode(message, head)
    assert chunks[0] is head, "records would be copied here"
    size = len(head) if len(chunks) == 1 else sum(map(len, chunks))
    SIZE.pack_into(head, 0, size - SIZE.size)
    return chunks


def _skip_tagged(frame: memoryview, position: int) -> int:
    if position < len(frame) and not frame[position]:
        return position + 1  # there are none, as nearly always
    count, position = read_unsigned(frame, position)
    if count > HEADER_TAGS_MAX:
        raise Malformed(f"{count} tagged fields in the header")
    for _ in range(count):
        _, position = read_unsigned(frame, position)
        size, position = read_unsigned(frame, position)
        position += size
        if position > len(frame):
            raise Malformed("tagged field of the header beyond the end")
    return position
