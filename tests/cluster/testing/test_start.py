"""A cluster starts although another program has taken a port, and keeps its files where it is told to."""

import asyncio
import socket
from pathlib import Path

import pytest

from strandline.broker.config import ConfigError
from strandline.client.errors import StrandlineError
from strandline.testing import async_cluster, cluster
from strandline.testing.local_cluster import HOST, free_ports
from strandline.testing.nursery import nursery

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]
PORTS = "strandline.testing.relayed_cluster.free_ports"


def test_a_port_that_another_program_has_taken_costs_one_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server((HOST, 0)) as taken:
        offered = iter([[taken.getsockname()[1], *free_ports(1)], free_ports(2)])
        monkeypatch.setattr(PORTS, lambda count: next(offered))
        with cluster(nodes=1, folder=tmp_path) as strandline:
            assert strandline.why_not_healthy() == ""
            assert strandline.prefix == ""
            with pytest.raises(StrandlineError, match="already exists"):
                [strandline.create_topic("orders") for _ in range(2)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]
    assert "Address already in use" in (tmp_path / "1" / "node-1" / "node.log").read_text()
    assert (tmp_path / "2" / "node-1" / "data" / "orders-0").is_dir()


def test_a_folder_may_be_named_from_where_the_program_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nursery()  # where it is does not change
    monkeypatch.chdir(tmp_path)
    with cluster(nodes=1, folder=Path("here")) as strandline:
        assert strandline.why_not_healthy() == ""
    assert (tmp_path / "here" / "1" / "node-1" / "data").is_dir()


def test_a_setting_that_is_not_valid_is_named() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value x for configuration log\.segment\.bytes"):
        cluster(nodes=1, config={"log.segment.bytes": "x"}).__enter__()


def test_the_start_and_the_end_do_not_block_a_loop() -> None:
    async def run() -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        beside = asyncio.create_task(tick())
        with pytest.raises(ZeroDivisionError):
            async with async_cluster(nodes=1) as strandline:
                started = ticks
                assert strandline.node(1).running
                _ = 1 / 0
        assert not strandline.node(1).running
        beside.cancel()
        return started

    assert asyncio.run(run()) > 10
