"""`strandline up` before it starts anything: what it refuses, and that this changes nothing."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.cli.nodes import up as command
from strandline.server.storage.formatting import NotFormattable
from strandline.server.storage.lock import lock_directory
from strandline.testing import cluster_folder
from strandline.testing.cluster_folder import Occupied, refuse_busy_ports
from strandline.testing.local_cluster import HOST, LocalCluster


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "interrupted_by_signals", lambda: None)
    monkeypatch.setattr(LocalCluster, "start", lambda _: pytest.fail("it was not refused"))


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as server:
        server.bind((HOST, 0))
        server.listen()
        yield server.getsockname()[1]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refused(capsys: pytest.CaptureFixture[str], folder: Path, port: int = 9092, nodes: int | None = None) -> str:
    """What it says; its status is in front."""
    with pytest.raises(SystemExit) as ended:
        command.up(nodes=nodes, dir=folder, port=port)
    return f"{ended.value.code} {capsys.readouterr().err}"


@pytest.mark.parametrize(("port", "nodes"), [(19300, None), (19300, 5), (9092, None)])
def test_in_the_folder_of_a_running_cluster_nothing_is_touched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], port: int, nodes: int | None
) -> None:
    folder = tmp_path / "cluster"
    LocalCluster(folder, 3, ports=range(20000, 20006)).lay_out()
    lock = lock_directory(str(folder))
    before = contents(folder)
    text = refused(capsys, folder, port, nodes)
    os.close(lock)
    assert text.startswith(f"1 error: a cluster runs in {folder} already (`strandline up`, process {os.getpid()})")
    assert "its bootstrap address is 127.0.0.1:20000,127.0.0.1:20002,127.0.0.1:20004\n" in text
    assert f"`kill {os.getpid()}` stops it" in text
    assert contents(folder) == before


def test_a_cluster_keeps_its_number_of_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    LocalCluster(tmp_path, 3).lay_out()
    before = contents(tmp_path)
    assert refused(capsys, tmp_path, nodes=5).startswith(f"2 error: the cluster in {tmp_path} has 3 nodes")
    assert contents(tmp_path) == before
    assert command.wanted_nodes(None, tmp_path) == command.wanted_nodes(3, tmp_path) == 3
    assert (command.wanted_nodes(None, tmp_path / "new"), command.wanted_nodes(5, tmp_path / "new")) == (3, 5)


def test_a_folder_that_cannot_be_one_is_an_error_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_folder, "is_port_free", lambda _: True)
    file = tmp_path / "file"
    file.write_text("mine")
    assert refused(capsys, file, 20100) == f"1 error: {file} is not a folder\n  name another with --dir\n"
    assert "the cluster's folder cannot be used" in refused(capsys, file / "below", 20100)
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("port", "nodes", "said"),
    [
        (0, 3, "--port must be between 1 and 65527, and is 0\n  3 nodes need 9 ports from there on"),
        (65528, 3, "--port must be between 1 and 65527"),
        (70000, 1, "--port must be between 1 and 65533"),
        (9092, 0, "--nodes must be between 1 and 20"),
        (9092, 99, "--nodes must be between 1 and 20"),
    ],
)
def test_numbers_that_cannot_be_are_refused_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], port: int, nodes: int, said: str
) -> None:
    assert refused(capsys, tmp_path / "new", port, nodes).startswith(f"2 error: {said}")
    assert not (tmp_path / "new").exists()


def test_a_port_in_use_is_named_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], taken_port: int
) -> None:
    assert f"{taken_port} " in refused(capsys, tmp_path / "new", taken_port - 1, 1)
    assert not (tmp_path / "new").exists()


def test_a_node_that_runs_by_hand_must_have_the_clusters_ports(tmp_path: Path, taken_port: int) -> None:
    """Its own ports are in use, and that is as it should be."""
    LocalCluster(tmp_path, 1, ports=[taken_port, 1]).lay_out()
    lock = lock_directory(str(tmp_path / "node-1" / "data"))
    refuse_busy_ports(LocalCluster(tmp_path, 1, ports=[taken_port, 1]))
    with pytest.raises(Occupied, match=f"listens elsewhere, at {HOST}:{taken_port}"):
        refuse_busy_ports(LocalCluster(tmp_path, 1, ports=[taken_port + 2, 1]))
    os.close(lock)


def test_what_is_not_a_cluster_id_is_named(tmp_path: Path) -> None:
    (tmp_path / "cluster.id").write_text("nonsense\n")
    with pytest.raises(NotFormattable, match=r"cluster\.id does not have a cluster id"):
        LocalCluster(tmp_path, 1, ports=[1, 2]).lay_out()


@pytest.mark.parametrize(
    ("variable", "address", "is_named"),
    [
        (None, "127.0.0.1:9092", False),
        (None, "127.0.0.1:9300", True),
        ("127.0.0.1:9300", "127.0.0.1:9300", False),
        ("elsewhere:9092", "127.0.0.1:9092", True),
    ],
)
def test_the_commands_to_begin_with_go_to_this_cluster(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, address: str, is_named: bool
) -> None:
    monkeypatch.delenv("STRANDLINE_BOOTSTRAP", raising=False)
    if variable is not None:
        monkeypatch.setenv("STRANDLINE_BOOTSTRAP", variable)
    assert [f"--bootstrap-server {address}" in line for line in command.hints(address)] == [is_named] * 3
