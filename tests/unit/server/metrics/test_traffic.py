"""Requests counted on real connections, and the page over HTTP."""

import asyncio
import socket
from contextlib import suppress
from struct import pack
from typing import Any

import pytest
from tests.rows import each
from tests.unit.server.network.echo import Rig, heartbeat, rig, run

from strandline.base.effects import Endpoint
from strandline.base.errors import ErrorCode
from strandline.base.metrics import Histogram
from strandline.server.metrics.metrics import CONNECTIONS_MAX, MetricsServer
from strandline.server.metrics.traffic import Traffic, codes_of
from strandline.wire.api import APIS
from strandline.wire.frame import encode_request
from strandline.wire.messages.records.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from strandline.wire.messages.records.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse


def measured(it: Rig) -> Traffic:
    traffic = Traffic()
    it.net.make_connection = traffic.connection
    return traffic


def values_of(it: Rig, traffic: Traffic) -> dict[tuple[str, ...], Any]:
    return {(f.metric.name, *labels): value for f in traffic.families(it.net) for labels, value in f.samples}


def test_requests_are_counted_timed_and_weighed_by_api() -> None:
    async def scenario() -> None:
        async with rig() as it:
            traffic = measured(it)
            client = await it.client()
            for n in range(3):
                client.send(n)
                answer = pack(">i", 0) + await client.frame()
            now = values_of(it, traffic)
            assert now["kafka_network_RequestMetrics_Requests_total", "Heartbeat", "4"] == 3
            size = len(heartbeat(0, 0))
            assert now["kafka_server_socketservermetrics_incoming_byte_total", "PLAINTEXT"] == 3 * size
            assert now["kafka_server_socketservermetrics_outgoing_byte_total", "PLAINTEXT"] == 3 * len(answer)
            for name in ("RequestQueueTimeMs", "LocalTimeMs", "TotalTimeMs"):
                histogram = now[f"kafka_network_RequestMetrics_{name}", "Heartbeat"]
                assert isinstance(histogram, Histogram)
                assert histogram.count == 3
                assert histogram.total < 60e9
            assert now["kafka_server_socketservermetrics_connection_count", "PLAINTEXT"] == 1
            assert now["kafka_server_socketservermetrics_connection_count", "CONTROLLER"] == 0
            assert now["kafka_server_socketservermetrics_connection_creation_total", "PLAINTEXT"] == 1

    run(scenario)


def test_fetches_of_followers_are_counted_apart_from_those_of_consumers() -> None:
    async def scenario() -> None:
        async with rig() as it:
            traffic = measured(it)
            for version, request in (
                (12, FetchRequest()),
                (12, FetchRequest(replica_id=2)),
                (18, FetchRequest(replica_state=ReplicaState(replica_id=3, replica_epoch=5))),
            ):
                client = await it.client()
                for _ in range(version // 6):
                    frame = b"".join(bytes(part) for part in encode_request(request, version, 1, "c"))
                    client.writer.write(frame)
                    await client.frame()
            now = values_of(it, traffic)
            assert {
                key[1:]: value for key, value in now.items() if key[0] == "kafka_network_RequestMetrics_Requests_total"
            } == {("FetchConsumer", "12"): 2, ("FetchFollower", "12"): 2, ("FetchFollower", "18"): 3}
            assert now["kafka_network_RequestMetrics_TotalTimeMs", "FetchFollower"].count == 5
            assert now["kafka_network_RequestMetrics_LocalTimeMs", "FetchConsumer"].count == 2

    run(scenario)


def test_answers_out_of_order_are_timed_from_their_own_requests() -> None:
    async def scenario() -> None:
        async with rig() as it:
            traffic = measured(it)
            client = await it.client()
            for generation in range(5):
                client.send(generation, "hold")
            client.send(5, "mute")
            await asyncio.sleep(0.05)
            client.send(6, "release")
            client.send(7)
            assert [await client.answer() for _ in range(7)] == [(n, n) for n in (0, 1, 2, 3, 4, 6, 7)]
            total = values_of(it, traffic)["kafka_network_RequestMetrics_TotalTimeMs", "Heartbeat"]
            assert total.count == 8
            assert sum(total.counts[total.bounds.index(25_000_000) + 1 :]) == 5, "the five that were held"

    run(scenario)


def test_what_nobody_serves_does_not_make_the_page_grow(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with rig() as it:
            traffic = measured(it)
            for frame in (pack(">hhih", 999, 0, 1, -1), pack(">hhih", 12, 9000, 1, -1), b"\0", b"\0\x0c\0\4junk"):
                client = await it.client()
                client.writer.write(pack(">i", len(frame)) + frame)
                assert await client.is_closed()
            assert [key for key in values_of(it, traffic) if "RequestMetrics" in key[0]] == []

    run(scenario)


def test_a_new_clients_first_question_is_answered_though_its_version_is_unknown() -> None:
    async def scenario() -> None:
        async with rig() as it:
            measured(it)
            client = await it.client()
            client.writer.write(pack(">ihhih", 10, 18, 99, 7, -1))
            client.send(1)
            assert (await client.frame())[:4] == pack(">i", 7)
            assert await client.answer() == (0, 1)

    run(scenario)


def test_error_codes_are_found_down_to_partitions() -> None:
    def produced(*codes: int) -> ProduceResponse:
        rows = tuple(PartitionProduceResponse(index=i, error_code=code) for i, code in enumerate(codes))
        return ProduceResponse(responses=(TopicProduceResponse(name="t", partition_responses=rows),))

    assert codes_of(ProduceResponse)(produced(0, 0)) == []
    assert codes_of(ProduceResponse)(produced(0, 6, 19, 6)) == [6, 19, 6]
    partition = PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    fetched = FetchResponse(error_code=70, responses=(FetchableTopicResponse(topic="t", partitions=(partition,)),))
    assert codes_of(FetchResponse)(fetched) == [70, 1]


@each("api", APIS, ids=lambda api: api.name)
def test_every_response_can_be_looked_through(api: Any) -> None:
    assert codes_of(api.response)(api.response()) == []


# --- HTTP


async def asked(at: Endpoint, request: bytes) -> bytes:
    """The answer; empty if the connection was closed or reset instead."""
    reader, writer = await asyncio.open_connection(at.host, at.port)
    writer.write(request)
    answer = b""
    with suppress(ConnectionError):
        answer = await reader.read()
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
    return answer


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", b"405"),
        (b"HEAD /nothing HTTP/1.0\r\n\r\n", b"404"),
        (b"\r\n\r\n", b"405"),
    ],
)
def test_anything_but_the_page_is_refused(request_head: bytes, status: bytes) -> None:
    async def scenario() -> None:
        async with rig() as it, serving(it) as (_, at):
            assert (await asked(at, request_head)).split(b" ")[1] == status

    run(scenario)


def test_a_request_without_end_is_not_read_for_ever() -> None:
    async def scenario() -> None:
        async with rig() as it, serving(it) as (_, at):
            assert await asked(at, b"x" * 100_000) == b""

    run(scenario)


def test_a_page_that_cannot_be_made_is_reported_and_the_node_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with rig() as it, serving(it) as (server, at):
            server.node = "no node"  # type: ignore[assignment]
            with caplog.at_level("ERROR", "strandline"):
                answer = await asked(at, b"GET /metrics HTTP/1.1\r\n\r\n")
            assert answer.split(b" ")[1] == b"500"
            assert it.stops == []

    run(scenario)


def test_idle_connections_give_way_to_a_scrape_the_oldest_first() -> None:
    async def scenario() -> None:
        async with rig() as it, serving(it) as (server, at):
            idle = [await asyncio.open_connection(at.host, at.port) for _ in range(CONNECTIONS_MAX)]
            await it.until(lambda: len(server.connections) == CONNECTIONS_MAX)
            for scrapes in range(1, 4):
                assert (await asked(at, b"GET / HTTP/1.1\r\n\r\n")).split(b" ")[1] == b"404"
                assert await idle[scrapes - 1][0].read() == b"", "the oldest is closed"
                await it.until(lambda: len(server.connections) < CONNECTIONS_MAX)
                idle.append(await asyncio.open_connection(at.host, at.port))
                await it.until(lambda: len(server.connections) == CONNECTIONS_MAX)
            for _, writer in idle:
                writer.close()

    run(scenario)


def test_who_does_not_read_the_page_gives_way_too_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    async def page(head: bytes) -> bytes:
        made.append(head)
        return bytes(40_000_000) if head.startswith(b"GET /large") else b"small"

    async def scenario() -> None:
        async with rig() as it, serving(it) as (server, at):
            monkeypatch.setattr(server, "answer", page)
            askers = [socket.create_connection((at.host, at.port)) for _ in range(CONNECTIONS_MAX)]
            for asker in askers:
                asker.sendall(b"GET /large HTTP/1.1\r\n\r\n")
            await it.until(lambda: len(made) == len(server.idle) == CONNECTIONS_MAX)
            others = asyncio.all_tasks() - set(server.connections)
            assert await asked(at, b"GET / HTTP/1.1\r\n\r\n") == b"small"
            await it.until(lambda: len(server.connections) == CONNECTIONS_MAX - 1)
            assert asyncio.all_tasks() - set(server.connections) == others
            for asker in askers:
                asker.close()

    run(scenario)


class serving:  # noqa: N801  # a context manager
    def __init__(self, it: Rig) -> None:
        self.server = MetricsServer(Endpoint("127.0.0.1", 0), it.net)

    async def __aenter__(self) -> tuple[MetricsServer, Endpoint]:
        at = self.server.bind()
        await self.server.serve(None)  # type: ignore[arg-type]
        return self.server, at

    async def __aexit__(self, *_: object) -> None:
        await self.server.close()
