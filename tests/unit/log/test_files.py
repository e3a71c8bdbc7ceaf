"""The small files of a log directory, byte for byte as Kafka has them."""

import json
from collections.abc import Callable

import pytest

from strandline.base.ids import TopicIdPartition, TopicPartition, Uuid, parse_uuid
from strandline.base.ports import DiskError
from strandline.log.checkpoints import Unreadable, format_epochs, format_offsets, parse_epochs, parse_offsets
from strandline.log.directory import (
    DirectoryMeta,
    directory_name,
    parse_directory_name,
    read_meta,
    read_topic_id,
    write_meta,
    write_partition_metadata,
)
from strandline.log.epochs import EpochStart
from strandline.log.evidence.clean_shutdown import FILE, Place, Stop, take_clean_shutdown, write_clean_shutdown
from strandline.log.evidence.inventory import Left
from strandline.sim.world.disk import SimDisk

ID_TEXT = "AAECAwQFBgcICQoLDA0ODw"


def test_offsets_are_sorted_lines_behind_a_version_and_a_count() -> None:
    offsets = {TopicPartition("b", 0): 7, TopicPartition("a", 10): 0, TopicPartition("a", 9): 5}
    assert format_offsets(offsets) == b"0\n3\na 9 5\na 10 0\nb 0 7\n"
    assert parse_offsets(format_offsets(offsets)) == offsets
    assert format_offsets({}) == b"0\n0\n"
    assert parse_offsets(b"0\n0\n") == {}


def test_epochs_are_lines_of_epoch_and_start() -> None:
    entries = [EpochStart(0, 0), EpochStart(3, 17)]
    assert format_epochs(entries) == b"0\n2\n0 0\n3 17\n"
    assert parse_epochs(b"0\n2\n0 0\n3 17\n") == entries


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0\n",
        b"1\n0\n",
        b"0\n1\n",
        b"0\n1\na 0 1\nb 0 1\n",
        b"0\n1\na 0 x\n",
        b"0\n1\na 0 -1\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 12",
        b"\xff\xfe",
        bytes(20),
    ],
)
def test_a_checkpoint_that_is_torn_or_foreign_is_unreadable(content: bytes) -> None:
    with pytest.raises(Unreadable):
        parse_offsets(content)


def test_meta_properties_come_back_and_may_be_written_by_kafka() -> None:
    disk = SimDisk()
    assert read_meta(disk, "/d/logs") is None
    meta = DirectoryMeta("cluster-1", 3, parse_uuid(ID_TEXT))
    write_meta(disk, "/d/logs", meta)
    assert read_meta(disk, "/d/logs") == meta
    kafka = f"#\n#Sat Nov 21 05:25:01 UTC 2026\nnode.id=3\nversion=1\ndirectory.id={ID_TEXT}\ncluster.id=cluster-1\n"
    disk.write_file("/d/logs/meta.properties", kafka.encode())
    assert read_meta(disk, "/d/logs") == meta


@pytest.mark.parametrize("text", ["", "version=0\n", "version=1\n", "version=1\ncluster.id=x\nnode.id=y\n", "\x00"])
def test_meta_properties_that_are_invalid_are_an_error_with_the_path(text: str) -> None:
    disk = SimDisk()
    disk.write_file("/d/meta.properties", text.encode())
    with pytest.raises(DiskError, match=r"/d/meta\.properties"):
        read_meta(disk, "/d")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t-0", TopicPartition("t", 0)),
        ("a-b-12", TopicPartition("a-b", 12)),
        ("__consumer_offsets-49", TopicPartition("__consumer_offsets", 49)),
        ("t", None),
        ("-0", None),
        ("t-", None),
        ("t-x", None),
        ("t-²", None),
        ("t-0.abc-delete", None),
    ],
)
def test_a_directory_says_whose_log_it_holds(name: str, expected: TopicPartition | None) -> None:
    assert parse_directory_name(name) == expected
    if expected is not None:
        assert directory_name(expected) == name


def test_partition_metadata_has_the_topic_id() -> None:
    disk = SimDisk()
    assert read_topic_id(disk, "/d") is None
    write_partition_metadata(disk, "/d", parse_uuid(ID_TEXT))
    assert disk.read_file("/d/partition.metadata") == f"version: 0\ntopic_id: {ID_TEXT}".encode()
    assert read_topic_id(disk, "/d") == parse_uuid(ID_TEXT)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 0",
        b"version: 0\ntopic_id: ?",
        f"topic_id: {ID_TEXT}".encode(),
        f"version: 1\ntopic_id: {ID_TEXT}".encode(),
        f"version: 0\ntopic_id: {ID_TEXT[:-1]}".encode(),
        f"version: 0\ntopic_id: {'A' * 22}".encode(),
        f"version: 0\ntopic_ie: {ID_TEXT}".encode(),
        bytes(40),
    ],
)
def test_damaged_partition_metadata_is_an_error_with_the_path(content: bytes) -> None:
    disk = SimDisk()
    disk.write_file("/d/partition.metadata", content)
    with pytest.raises(DiskError, match=r"/d/partition\.metadata is damaged"):
        read_topic_id(disk, "/d")


IDS = tuple(Uuid(bytes([n] * 16)) for n in (1, 2))
PLACE = Place("cluster", 7, (("/d/1", IDS[0]), ("/d/2", IDS[1])))


def two() -> SimDisk:
    disk = SimDisk()
    disk.make_directory("/d/1")
    disk.make_directory("/d/2")
    write_clean_shutdown(disk, PLACE, 42)
    return disk


def test_a_clean_stop_is_believed_once() -> None:
    disk = two()
    content = disk.read_file(f"/d/1/{FILE}")
    assert content is not None
    assert content.startswith(b'{"version":0,"brokerEpoch":42,"clusterId":"cluster","nodeId":7,'), "Kafka's first"
    assert take_clean_shutdown(disk, PLACE) == Stop(42, {"/d/1": (), "/d/2": ()})
    assert take_clean_shutdown(disk, PLACE) is None


@pytest.mark.parametrize("content", [None, b"", b"{}", b'{"version":0,"brokerEpoch":41}', b'{"version":0,"broker'])
def test_a_stop_was_not_clean_if_one_directory_disagrees(content: bytes | None) -> None:
    disk = two()
    disk.remove(f"/d/2/{FILE}")
    if content is not None:
        disk.write_file(f"/d/2/{FILE}", content)
    assert take_clean_shutdown(disk, PLACE) is None
    assert not disk.exists(f"/d/1/{FILE}")
    assert not disk.exists(f"/d/2/{FILE}")


@pytest.mark.parametrize("row", ["t 0 4611686018427387904", "t 0 99999999999999999999", "t 0 -1"])
def test_an_offset_that_no_log_has_makes_a_checkpoint_unreadable(row: str) -> None:
    with pytest.raises(Unreadable):
        parse_offsets(f"0\n1\n{row}\n".encode())


@pytest.mark.parametrize("row", ["2147483648 0", "-1 0", "0 -1", "0 4611686018427387904"])
def test_an_epoch_that_no_log_has_makes_the_file_of_epochs_unreadable(row: str) -> None:
    with pytest.raises(Unreadable):
        parse_epochs(f"0\n1\n{row}\n".encode())


AT = TopicIdPartition(Uuid(b"t" * 16), 3)


def with_logs() -> SimDisk:
    disk = two()
    rows = (Left.in_doubt(AT, 5, 9), Left.in_doubt(TopicIdPartition(AT.topic_id, 4), 0, 1))
    write_clean_shutdown(disk, PLACE, 42, {"/d/1": rows, "/d/2": rows[:1]})
    return disk


def test_a_stop_says_how_it_left_the_logs_in_all_directories() -> None:
    stop = take_clean_shutdown(with_logs(), PLACE)
    assert stop is not None
    left = Left.in_doubt(AT, 5, 9)
    assert stop.logs == {"/d/1": (left, Left.in_doubt(AT._replace(partition=4), 0, 1)), "/d/2": (left,)}


def without_a_row(content: bytes) -> bytes:
    marker = json.loads(content)
    del marker["logs"][-1]
    return json.dumps(marker).encode()


def without_logs(content: bytes) -> bytes:
    """As a release before wrote it."""
    marker = json.loads(content)
    del marker["logs"], marker["logsChecksum"]
    return json.dumps(marker).encode()


@pytest.mark.parametrize("change", [without_a_row, without_logs, lambda content: content.replace(b",5,9,", b",5,8,")])
def test_a_marker_that_does_not_say_it_or_is_damaged_makes_the_stop_unclean(change: Callable[[bytes], bytes]) -> None:
    disk = with_logs()
    content = disk.read_file(f"/d/1/{FILE}")
    assert content is not None
    changed = change(content)
    assert changed != content
    disk.save(f"/d/1/{FILE}", changed)
    assert take_clean_shutdown(disk, PLACE) is None
