"""kcat (Debian's package) against a cluster that stays whole."""

import json
import shutil
import subprocess

import pytest

from strandline.testing.local_cluster import LocalCluster

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (apt-get install kcat)"),
]


def kcat(cluster: LocalCluster, *arguments: str, send: bytes = b"") -> bytes:
    command = ["kcat", "-b", cluster.bootstrap, *arguments]
    done = subprocess.run(command, input=send, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_kcat_produces_it_consumes(shared_cluster: LocalCluster, topic: str, codec: str) -> None:
    lines = b"".join(b"k%d:%s\n" % (i, b"v" * i) for i in range(1, 200))
    kcat(shared_cluster, "-P", "-t", topic, "-K:", "-z", codec, "-X", "acks=all", "-H", "a=b", send=lines)
    got = kcat(shared_cluster, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%k:%s\n")
    assert got == lines
    tail = kcat(shared_cluster, "-C", "-t", topic, "-o", "-1", "-e", "-q", "-f", "%o %h")
    assert tail == b"198 a=b"


def test_kcat_lists_the_cluster(shared_cluster: LocalCluster, topic: str) -> None:
    report = json.loads(kcat(shared_cluster, "-L", "-J"))
    assert {broker["id"] for broker in report["brokers"]} == {1, 2, 3}
    (found,) = [each for each in report["topics"] if each["topic"] == topic]
    assert len(found["partitions"][0]["isrs"]) == 3


def test_kcat_finds_an_offset_by_its_time(shared_cluster: LocalCluster, topic: str) -> None:
    kcat(shared_cluster, "-P", "-t", topic, send=b"one\ntwo\n")
    assert kcat(shared_cluster, "-Q", "-t", f"{topic}:0:1") == f"{topic} [0] offset 0\n".encode()


def test_kcat_consumes_as_a_group_and_goes_on(shared_cluster: LocalCluster, topic: str) -> None:
    kcat(shared_cluster, "-P", "-t", topic, send=b"one\ntwo\nthree\n")
    arguments = ("-G", f"g-{topic}", "-X", "auto.offset.reset=earliest", "-q", "-f", "%s ")
    assert kcat(shared_cluster, *arguments, "-c", "2", topic) == b"one two "
    assert kcat(shared_cluster, *arguments, "-c", "1", topic) == b"three "
