"""The shards of a machine: their properties, and one process that runs them."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.broker.config import NodeConfig, parse_properties
from strandline.server.machine import supervisor
from strandline.server.machine.layout import BadLayout, folder_of, name_of, shards_of, text_of

MACHINE = {
    "process.roles": "broker,controller",
    "node.id": "20",
    "controller.quorum.voters": "10@a:9093,20@b:9093,30@c:9093",
    "listeners": "PLAINTEXT://b:9092, CONTROLLER://b:9093",
    "advertised.listeners": "PLAINTEXT://b.example:9092",
    "controller.listener.names": "controller",
    "log.dirs": "/data/one, /data/two",
    "metadata.log.dir": "/meta",
    "strandline.metrics.listener": "127.0.0.1:9100",
}


def test_the_first_shard_is_the_node_that_was_and_the_others_are_brokers_beside_it() -> None:
    first, second, third = shards_of(MACHINE, 3)
    moved = ("log.dirs", "metadata.log.dir", "broker.rack", "listeners")
    assert {key: first[key] for key in MACHINE if key not in moved} == {
        key: value for key, value in MACHINE.items() if key not in moved
    }
    assert first["listeners"] == "PLAINTEXT://b:9092,CONTROLLER://b:9093"
    assert third["node.id"] == "22" and third["process.roles"] == second["process.roles"] == "broker"
    assert third["listeners"] == "PLAINTEXT://b:9112", "no vote, so no listener for controllers"
    assert third["advertised.listeners"] == "PLAINTEXT://b.example:9112"
    assert third["strandline.metrics.listener"] == "127.0.0.1:9120"
    assert third["controller.quorum.voters"] == MACHINE["controller.quorum.voters"], "those of other machines stay"
    assert (third["log.dirs"], third["metadata.log.dir"]) == ("/data/one/shard-02,/data/two/shard-02", "/meta/shard-02")
    assert {shard["broker.rack"] for shard in (first, second, third)} == {"machine-20"}
    for shard in (first, second, third):
        NodeConfig.from_properties(parse_properties(text_of(shard)))


def test_a_rack_that_is_named_stays_and_any_port_stays_any() -> None:
    _, second = shards_of(MACHINE | {"broker.rack": "r7", "listeners": "PLAINTEXT://:0"}, 2)
    assert (second["broker.rack"], second["listeners"]) == ("r7", "PLAINTEXT://:0")


@pytest.mark.parametrize(
    ("change", "count", "why"),
    [
        ({}, 0, "1 to 64 shards, not 0"),
        ({}, 65, "1 to 64 shards, not 65"),
        ({"node.id": "one"}, 2, "not 'one'"),
        ({"listeners": "PLAINTEXT://b"}, 2, "'PLAINTEXT://b' has no port"),
        (
            {"listeners": "PLAINTEXT://b:9092,SSL://b:9102,CONTROLLER://b:9093"},
            2,
            "shards 0 and 1 would both have port",
        ),
    ],
)
def test_a_machine_that_cannot_be_divided_is_told_why(change: dict[str, str], count: int, why: str) -> None:
    with pytest.raises(BadLayout, match=why):
        shards_of(MACHINE | change, count)


VALUES = st.text(st.sampled_from("a= :#!\\\n\r\t\f\"'é"), max_size=12).map(lambda text: text.rstrip())


@given(st.dictionaries(st.from_regex(r"[a-z.]+", fullmatch=True), VALUES, max_size=3))
def test_what_is_written_is_read_again(properties: dict[str, str]) -> None:
    assert parse_properties(text_of(properties)) == properties


def test_a_folder_lies_next_to_its_machines_file() -> None:
    assert folder_of(Path("/etc/strandline/m1.properties")) == Path("/etc/strandline/m1.d")
    assert sorted(map(name_of, range(64))) == [name_of(shard) for shard in range(64)]


class Scripted(supervisor.Supervisor):
    """Each shard's lives, by the name of its file: how each of them ends, or None if only a signal ends it."""

    def __init__(self, lives: dict[str, list[int | None]]) -> None:
        super().__init__([Path(name) for name in lives])
        self.lives = lives
        self.started: list[str] = []

    async def start(self, config: Path) -> asyncio.subprocess.Process:
        status = self.lives[config.name].pop(0)
        self.started.append(config.name)
        code = f"import sys; sys.exit({status})"
        if status is None:
            code = "import signal, sys; signal.signal(15, lambda *_: sys.exit(0)); print(flush=True); signal.pause()"
        shard = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
        assert shard.stdout is not None
        await shard.stdout.readline()  # it has its handler, or has ended
        return shard


def run_machine(lives: dict[str, list[int | None]], after_starts: int = 0) -> tuple[int, list[str]]:
    """Its exit status, and what was started. SIGTERM when so many were started; 0: it ends by itself."""
    one = Scripted(lives)

    async def scenario() -> int:
        machine = asyncio.create_task(one.run())
        while after_starts and len(one.started) < after_starts:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        if after_starts:
            os.kill(os.getpid(), signal.SIGTERM)
        return await asyncio.wait_for(machine, 20)

    return asyncio.run(scenario()), one.started


def test_a_signal_ends_all_shards_and_a_crashed_one_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "CRASHED_AGAIN_S", (0.01, 0.02))
    status, started = run_machine({"a": [None], "b": [3, -9, None]}, after_starts=4)
    assert (status, sorted(started)) == (0, ["a", "b", "b", "b"])


@pytest.mark.parametrize("ends", [0, 2])
def test_a_shard_that_was_stopped_or_cannot_start_ends_the_machine(ends: int, caplog: Any) -> None:
    assert run_machine({"a": [None], "b": [ends]}) == (ends, ["a", "b"])
    assert f"b has ended (status {ends}), and so does the machine" in caplog.text


def test_a_folder_without_shards_says_what_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert supervisor.run_machine(tmp_path) == 2
    assert "`strandline format --shards N` writes them" in capsys.readouterr().err
