"""Formatting: what a node's directories have before it starts, and what a new cluster begins with."""

import subprocess
import sys
from pathlib import Path

import pytest

from strandline.base.ids import parse_uuid
from strandline.broker.bootstrap_file import initial_features, initial_users
from strandline.broker.config import NodeConfig
from strandline.metadata.features import ELR_FEATURE, GROUP_FEATURE, METADATA_LEVEL, METADATA_VERSION, TXN_FEATURE
from strandline.server.storage.disk import RealDisk
from strandline.server.storage.formatting import NotFormattable, format_node, random_uuid_text


def test_a_directory_is_formatted_once_and_for_one_node(tmp_path: Path) -> None:
    cluster, path = random_uuid_text(), str(tmp_path / "data")
    parse_uuid(cluster)
    node = node_with(path)
    assert format_node(node, cluster, ignore_formatted=False) == [path]
    before = (tmp_path / "data/meta.properties").read_text()
    with pytest.raises(NotFormattable, match="already formatted"):
        format_node(node, cluster, ignore_formatted=False)
    assert format_node(node, cluster, ignore_formatted=True) == []
    with pytest.raises(NotFormattable, match="belongs to node 1"):
        format_node(node_with(path, node_id=2), cluster, ignore_formatted=True)
    assert (tmp_path / "data/meta.properties").read_text() == before


def test_a_refused_format_leaves_the_other_directories_alone(tmp_path: Path) -> None:
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    format_node(node_with(old), random_uuid_text(), ignore_formatted=False)
    with pytest.raises(NotFormattable):
        format_node(node_with(new, old), random_uuid_text(), ignore_formatted=True)
    assert not (tmp_path / "new").exists()


ELR_OFF = "eligible.leader.replicas.enabled"
WITHOUT_GROUP = {METADATA_VERSION: METADATA_LEVEL, TXN_FEATURE: 2}
WITHOUT_ELR = {**WITHOUT_GROUP, GROUP_FEATURE: 1}
WITH_ELR = {**WITHOUT_ELR, ELR_FEATURE: 1}
BEGINNINGS = [
    ("nothing is said", {}, {}, WITH_ELR),
    ("the node's file says no", {ELR_OFF: "false"}, {}, WITHOUT_ELR),
    ("the command says no", {}, {ELR_FEATURE: 0}, WITHOUT_ELR),
    ("the command wants older transactions", {}, {TXN_FEATURE: 1}, {**WITH_ELR, TXN_FEATURE: 1}),
    (
        "the command wants the first transactions",
        {ELR_OFF: "false"},
        {TXN_FEATURE: 0},
        {METADATA_VERSION: METADATA_LEVEL, GROUP_FEATURE: 1},
    ),
    ("the command wants no consumer protocol", {}, {GROUP_FEATURE: 0}, {**WITHOUT_GROUP, ELR_FEATURE: 1}),
    (
        "the command says yes, the file no",
        {ELR_OFF: "false"},
        {ELR_FEATURE: 1},
        WITH_ELR,
    ),
]


@pytest.mark.parametrize(("title", "said", "named", "levels"), BEGINNINGS, ids=[row[0] for row in BEGINNINGS])
def test_what_a_new_cluster_begins_with_is_decided_when_it_is_formatted(
    tmp_path: Path, title: str, said: dict[str, str], named: dict[str, int], levels: dict[str, int]
) -> None:
    """And not by what the file says later."""
    path = str(tmp_path / "data")
    format_node(node_with(path, **said), random_uuid_text(), named, ignore_formatted=False)
    later = {ELR_OFF: str(ELR_FEATURE not in levels).lower()}
    assert initial_features(RealDisk(), node_with(path, **later)) == levels


def test_a_directory_that_is_formatted_keeps_what_it_begins_with(tmp_path: Path) -> None:
    node, cluster = node_with(str(tmp_path / "data")), random_uuid_text()
    format_node(node, cluster, ignore_formatted=False)
    before = (tmp_path / "data/bootstrap.checkpoint").read_bytes()
    format_node(node, cluster, {ELR_FEATURE: 0}, ignore_formatted=True)
    assert (tmp_path / "data/bootstrap.checkpoint").read_bytes() == before


@pytest.mark.parametrize(
    ("level", "why"),
    [
        ("share.version=1", "Unsupported feature: share.version. Supported features are: eligible.leader.replicas"),
        (f"{ELR_FEATURE}=2", "cannot begin with level 2: levels 0 to 1 are supported"),
        (f"{METADATA_VERSION}=25", "cannot begin with level 25: levels 30 to 30 are supported"),
        ("nonsense", "is not NAME=LEVEL"),
    ],
)
def test_a_level_that_no_cluster_can_begin_with_formats_nothing(tmp_path: Path, level: str, why: str) -> None:
    done = format_command(tmp_path, "--feature", level)
    assert (done.returncode > 0, why in done.stderr) == (True, True), done.stderr
    assert not (tmp_path / "data").exists()


def format_command(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    config = folder / "server.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in properties_with(str(folder / "data")).items()))
    rows = ("format", "--config", str(config), "--cluster-id", random_uuid_text(), *more)
    command = [sys.executable, "-m", "strandline", *rows]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_new_cluster_begins_with_the_users_that_the_command_names(tmp_path: Path) -> None:
    wrong = format_command(tmp_path, "--add-scram", "SCRAM-SHA-1=[name=alice,password=secret]")
    assert (wrong.returncode, "SCRAM-SHA-1 is not supported" in wrong.stderr) == (2, True)
    assert not (tmp_path / "data").exists()
    alice, bob = "SCRAM-SHA-256=[name=alice,password=secret]", "SCRAM-SHA-512=[name=bob,password=other]"
    done = format_command(tmp_path, "--add-scram", alice, "--add-scram", bob)
    assert (done.returncode, "warning: the password" in done.stderr) == (0, True)
    users = initial_users(RealDisk(), node_with(str(tmp_path / "data")))
    assert [(user.name, user.mechanism) for user in users] == [("alice", 1), ("bob", 2)]
    assert not any(secret in done.stdout + done.stderr for secret in ("secret", "other,"))


def properties_with(*log_dirs: str, node_id: int = 1, **others: str) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "controller.quorum.voters": f"{node_id}@127.0.0.1:1",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": ",".join(log_dirs),
        **others,
    }


def node_with(*log_dirs: str, node_id: int = 1, **others: str) -> NodeConfig:
    return NodeConfig.from_properties(properties_with(*log_dirs, node_id=node_id, **others))
