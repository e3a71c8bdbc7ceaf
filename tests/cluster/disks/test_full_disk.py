"""A node whose disk, or one of whose log directories, is full, on real processes: by a limit on the size of its files,
and by a small file system."""

import os
import re
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.cluster.driving import QUICK, create, quiet, until

from strandline.testing.local_cluster import LocalCluster, NodeProcess

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]
VALUE_BYTES = 20_000
FILE_BYTES_MAX = 400_000
TMPFS_BYTES = 8 << 20
PRODUCED_MAX = 600
LIMIT_S = 90.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster", 3, properties=QUICK) as cluster:
        yield cluster


class Writer:
    """Writes with acks=all, and knows what was acknowledged."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.acknowledged: list[int] = []
        self.number = 0
        self.producer = Producer(
            quiet(cluster.bootstrap, acks="all", enable_idempotence=True, message_timeout_ms=60_000)
        )

    def write(self, count: int) -> None:
        for _ in range(count):
            number, self.number = self.number, self.number + 1
            value = b"%08d" % number + bytes(VALUE_BYTES)
            self.producer.produce("t", value, partition=0, callback=self.noted(number))
        self.producer.flush(60)

    def noted(self, number: int) -> Callable[[object, object], None]:
        def note(error: object, message: object) -> None:
            if error is None:
                self.acknowledged.append(number)

        return note

    def until_full(self, node: NodeProcess, what: str = "waits, and restarts by itself") -> None:
        while what not in node.log_path.read_text():
            assert self.number < PRODUCED_MAX, "it has room for all of this"
            self.write(10)


def consumed(cluster: LocalCluster) -> list[int]:
    """The numbers of all records that are committed."""
    consumer = Consumer(quiet(cluster.bootstrap, group_id="all", enable_auto_commit=False))
    at = TopicPartition("t", 0, 0)
    consumer.assign([at])
    _, end = consumer.get_watermark_offsets(at, timeout=30)
    found: list[int] = []
    last = time.monotonic() + LIMIT_S
    while len(found) < end:
        assert time.monotonic() < last, f"{len(found)} of {end}"
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append(int(message.value()[:8]))
    consumer.close()
    return found


def log_of(node: NodeProcess) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(node.folder.glob("*/t-0/*.log")))


def isr(cluster: LocalCluster, topic: str = "t") -> set[int]:
    found = AdminClient(quiet(cluster.bootstrap)).list_topics(topic, timeout=10).topics[topic]
    return set(found.partitions[0].isrs)


def leader(cluster: LocalCluster) -> int:
    found = AdminClient(quiet(cluster.bootstrap)).list_topics("t", timeout=10).topics["t"]
    return int(found.partitions[0].leader)


def judged(cluster: LocalCluster, writer: Writer, node: NodeProcess, pid: int) -> None:
    """The node is back with all that was acknowledged, in the same process, and said in one line each what was."""
    until(lambda: isr(cluster) == {1, 2, 3}, LIMIT_S)
    assert node.running
    assert node.process is not None
    assert node.process.pid == pid
    assert sorted(writer.acknowledged) == consumed(cluster) == list(range(writer.number)), "each once, in order"
    contents = [log_of(one) for one in cluster.nodes]
    assert contents[0] == contents[1] == contents[2]
    text = node.log_path.read_text()
    assert "Traceback" not in text
    assert "crashed" not in text


def test_a_limit_on_file_sizes_ends_no_process_and_loses_nothing(cluster: LocalCluster) -> None:
    create(cluster, "t", partitions=1)
    writer = Writer(cluster)
    writer.write(5)
    node = cluster.node(leader(cluster))
    assert node.process is not None
    pid = node.process.pid
    limit, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, hard))
    writer.until_full(node)
    assert re.search(r"stops: disk full: \S+\.log: File too large", node.log_path.read_text())
    assert leader(cluster) != node.node_id
    writer.write(10)
    assert node.running
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard))
    judged(cluster, writer, node, pid)


class Jbod(LocalCluster):
    """Each node has its metadata in one directory and partitions in two others."""

    def properties_text(self, node: NodeProcess) -> str:
        log_dirs = ",".join(str(node.folder / name) for name in ("d0", "d1"))
        return super().properties_text(node) + f"metadata.log.dir={node.data_path}\nlog.dirs={log_dirs}\n"


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """Which directory of the first node is a file system of its own."""
    return str(getattr(request, "param", "data"))


@pytest.fixture
def small(tmp_path: Path, place: str) -> Iterator[Path]:
    """A file system of a few MiB."""
    folder = tmp_path / "cluster" / "node-1" / place
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted: {done.stderr.strip()}")
    with ExitStack() as stack:
        stack.callback(subprocess.run, ["umount", "-l", str(folder)], check=False)
        yield folder


def test_a_full_file_system_ends_no_process_and_its_node_is_back_when_there_is_room(
    small: Path, tmp_path: Path
) -> None:
    with LocalCluster(tmp_path / "cluster", 3, properties=QUICK) as cluster:
        node = cluster.node(1)
        assert os.path.ismount(small)
        create(cluster, "t", partitions=1)
        writer = Writer(cluster)
        writer.write(5)
        assert node.process is not None
        pid = node.process.pid
        ballast = small / "ballast"
        ballast.write_bytes(bytes(TMPFS_BYTES // 2))
        writer.until_full(node)
        assert "No space left on device" in node.log_path.read_text()
        assert f"{small} has " in node.log_path.read_text()
        writer.write(10)
        assert node.running
        ballast.unlink()
        judged(cluster, writer, node, pid)


@pytest.mark.parametrize("place", ["d0"], indirect=True)
def test_a_node_with_another_directory_goes_on_and_is_back_with_both_when_there_is_room(
    small: Path, tmp_path: Path
) -> None:
    with Jbod(tmp_path / "cluster", 3, properties=QUICK) as cluster:
        node = cluster.node(1)
        assert os.path.ismount(small)
        create(cluster, "t", partitions=1)
        create(cluster, "u", partitions=1)
        assert (small / "t-0").is_dir()
        assert not (small / "u-0").exists()
        writer = Writer(cluster)
        writer.write(5)
        assert node.process is not None
        pid = node.process.pid
        ballast = small / "ballast"
        ballast.write_bytes(bytes(TMPFS_BYTES // 2))
        writer.until_full(node, f"the log directory {small} is full, and offline from now on")
        writer.write(10)
        assert node.running
        assert isr(cluster) == {2, 3}
        assert isr(cluster, "u") == {1, 2, 3}, "it lies in the other directory"
        ballast.unlink()
        judged(cluster, writer, node, pid)
        text = node.log_path.read_text()
        assert text.count(f"there is space in {small} again: node 1 shuts down, and restarts") == 1
        assert text.count("registered with broker epoch") == 2
