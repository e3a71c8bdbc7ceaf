"""Frames: which header goes with which version, and what is refused."""

import io
from collections.abc import Iterator
from struct import pack
from typing import Any

import pytest
from kio.schema.request_header.v1 import header as kio_v1
from kio.schema.request_header.v2 import header as kio_v2
from kio.serial import entity_writer

from strandline.wire.api import (
    API_BY_KEY,
    API_VERSIONS,
    APIS,
    OWN_KEYS,
    Api,
    advertised_versions,
    api_of,
    is_allowed,
    module_name,
)
from strandline.wire.codec import encode_bytes
from strandline.wire.frame import (
    Malformed,
    UnsupportedApi,
    UnsupportedVersion,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from strandline.wire.messages.own.acknowledge_losses import AcknowledgeLossesRequest
from strandline.wire.messages.own.quarantine import QuarantineRequest


def cases() -> Iterator[tuple[Api, int]]:
    for api in APIS:
        yield from ((api, version) for version in api.request.versions)


def frame_of(chunks: list[bytes]) -> memoryview:
    data = b"".join(chunks)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    return memoryview(data)[4:]


@pytest.mark.parametrize("client_id", ["", "client", None])
def test_every_request_comes_back_with_its_header(client_id: str | None) -> None:
    for api, version in cases():
        message = api.request()
        request = decode_request(frame_of(encode_request(message, version, 77, client_id)))
        assert (request.api_key, request.api_version, request.correlation_id) == (api.key, version, 77)
        assert request.client_id == client_id
        assert type(request.message) is api.request


def test_every_response_comes_back_with_its_correlation_id() -> None:
    for api, version in cases():
        frame = frame_of(encode_response(api.response(), version, -5))
        correlation_id, message = decode_response(api.response, version, frame)
        assert correlation_id == -5
        assert type(message) is api.response


def test_the_response_header_of_api_versions_never_has_tagged_fields() -> None:
    response = API_BY_KEY[API_VERSIONS].response
    assert 3 in response.flexible
    frame = frame_of(encode_response(response(), 3, 1))
    assert bytes(frame[:7]) == pack(">ihb", 1, 0, 1), "correlation id, error code, no keys"


def test_a_newer_api_versions_is_refused_with_what_the_answer_needs() -> None:
    with pytest.raises(UnsupportedVersion) as refused:
        decode_request(memoryview(pack(">hhih", 18, 99, 1234, 2) + b"me" + b"whatever v99 is"))
    error = refused.value
    assert (error.api_key, error.api_version, error.correlation_id, error.client_id) == (18, 99, 1234, "me")


def test_an_unknown_api_is_refused() -> None:
    with pytest.raises(UnsupportedApi):
        decode_request(memoryview(pack(">hhih", 30000, 0, 1, -1)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x12\x00",
        pack(">hhih", 18, 0, 1, 5) + b"abc",
        pack(">hhih", 18, 0, 1, -2),
        pack(">hhih", 18, 0, 1, 1) + b"\xff",
        pack(">hhih", 18, 3, 1, -1) + b"\x01\x00\x7f",
    ],
)
def test_a_header_that_lies_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode_request(memoryview(data))


def test_tagged_fields_in_the_header_are_skipped() -> None:
    plain = b"".join(encode_request(API_BY_KEY[API_VERSIONS].request(), 3, 1, None))[4:]
    tagged = plain[:10] + b"\x01\x09\x02hi" + plain[11:]
    assert decode_request(memoryview(tagged)) == decode_request(memoryview(plain))


def test_versions_that_clients_see_can_be_read_except_those_of_produce_that_are_rejected() -> None:
    for api in APIS:
        readable = set(api.request.versions) & set(api.response.versions)
        reported = set(api.advertised or ())
        assert reported - readable == ({0, 1, 2} if api.name == "Produce" else set()), api.name


def test_each_listener_reports_only_what_it_answers() -> None:
    for on_controller in (False, True):
        reported = {row.api_key for row in advertised_versions(on_controller=on_controller, has_telemetry=True)}
        silent = {row.api_key for row in advertised_versions(on_controller=on_controller)}
        assert reported - silent == (set() if on_controller else {71, 72}), "nobody would see what clients push"
        assert reported == {key for key in range(OWN_KEYS) if is_allowed(key, is_controller=on_controller)}
    assert not is_allowed(52, is_controller=False), "Vote is for controllers"
    assert not is_allowed(0, is_controller=True), "Produce is for brokers"


def test_our_own_apis_are_answered_by_brokers_and_hidden_from_clients() -> None:
    """One of them is decided by the controller, and brokers pass it on; one is for all nodes."""
    own = [api.key for api in APIS if api.is_own]
    assert own
    for key in own:
        assert is_allowed(key, is_controller=False)
        on_controllers = (AcknowledgeLossesRequest.api_key, QuarantineRequest.api_key)
        assert is_allowed(key, is_controller=True) == (key in on_controllers)
        for on_controller in (False, True):
            assert key not in {row.api_key for row in advertised_versions(on_controller=on_controller)}


def test_a_listener_of_controllers_reports_no_version_that_is_not_for_clients() -> None:
    for row in advertised_versions(on_controller=True):
        advertised = API_BY_KEY[row.api_key].advertised
        if advertised is not None:
            assert (row.min_version, row.max_version) == (advertised[0], advertised[-1])


def test_a_message_knows_its_api() -> None:
    for api in APIS:
        assert api_of(api.request) is api
        assert api_of(api.response()) is api
        assert api.request.kind == "request"
        assert api.response.kind == "response"
        assert api.request.versions == api.response.versions
        assert api.request.__module__.endswith("." + module_name(api.name))


@pytest.mark.parametrize(("version", "header"), [(4, kio_v1.RequestHeader), (12, kio_v2.RequestHeader)])
def test_the_request_header_is_kios(version: int, header: type[Any]) -> None:
    stream = io.BytesIO()
    expected = header(request_api_key=1, request_api_version=version, correlation_id=7, client_id="me")
    entity_writer(header)(stream, expected)
    request = API_BY_KEY[1].request()
    frame = frame_of(encode_request(request, version, 7, "me"))
    assert bytes(frame) == stream.getvalue() + encode_bytes(request, version)


def test_stray_bytes_behind_a_request_are_ignored() -> None:
    """As librdkafka 2.16 sends it when it asks for all topics; Kafka takes it too."""
    frame = bytes.fromhex("0003000d00000003000772646b61666b610000000000010000")
    request = decode_request(memoryview(frame))
    assert (request.api_key, request.api_version, request.client_id) == (3, 13, "rdkafka")
    assert request.message.topics is None
    assert request.message.allow_auto_topic_creation is False
