"""A log directory that was offline at a stop in order, and is back at the start after it."""

import pytest
from tests.unit.replica.conftest import AT
from tests.unit.replica.storage.test_directories import Jbod, directory

from strandline.base.ids import NodeId, TopicIdPartition
from strandline.base.ports import DiskFull
from strandline.log.evidence.clean_shutdown import LogsLeft
from strandline.log.evidence.inventory import Left
from strandline.metadata import records as r
from strandline.metadata.image import LOST_DIRECTORY
from strandline.metadata.losses import NO_END, Cause
from strandline.replica.withdrawing import left_in

ME = NodeId(2)
OTHER = TopicIdPartition(AT.topic_id, 1)
Found = tuple[int, int, Cause]


@pytest.fixture
def jbod() -> Jbod:
    """t-0 lies in /d0 of each broker, with six records in three segments, and t-1 in /d1, empty. Broker 1 leads."""
    made = Jbod()
    made.create(directories=tuple(directory(node, 0) for node in (1, 2, 3)), segment_bytes="150")
    made.commit(
        r.PartitionRecord(
            partition_id=1, topic_id=AT.topic_id, replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=0,
            partition_epoch=0, directories=tuple(directory(node, 1) for node in (1, 2, 3)),
        )
    )  # fmt: skip
    made.run(1_000)
    for _ in range(6):
        made.produce(1)
    made.run(70_000)
    return made


def fill(jbod: Jbod) -> None:
    replicas = jbod.nodes[ME]
    replicas.host.fail(replicas.host.directories.live[0], DiskFull("/d0/a: No space left on device"))
    jbod.perform(ME, [])


def stop(jbod: Jbod) -> LogsLeft:
    """In order. How it leaves the logs, as the next start hears of it with both directories."""
    replicas = jbod.nodes[ME]
    replicas.shutdown(jbod.now)
    replicas.close()
    (other,) = replicas.host.directories.live
    (there,) = replicas.left_offline().values()
    left = left_in(replicas.host, jbod.disks[ME], other)
    jbod.kill(ME)
    return {other.path: left + there}


def found(jbod: Jbod) -> dict[TopicIdPartition, Found]:
    held = jbod.nodes[ME].host.withdrawals.held
    return {at: (lost.start, lost.end, lost.cause) for at, lost in held.items()}


def test_its_replicas_are_in_doubt_and_no_others(jbod: Jbod) -> None:
    fill(jbod)
    left = stop(jbod)
    jbod.start(ME, left=left)
    assert found(jbod) == {AT: (0, 6, Cause.OFFLINE)}
    host = jbod.nodes[ME].host
    there, other = host.partitions.find(AT), host.partitions.find(OTHER)
    assert there is not None
    assert other is not None
    assert (there.role, there.is_doubtful) == (None, True)
    assert (other.role is None, other.is_doubtful) == (False, False)


def test_one_of_them_takes_part_again_when_metadata_has_it_out_of_the_isr(jbod: Jbod) -> None:
    fill(jbod)
    left = stop(jbod)
    jbod.change(isr=(1, 3))
    for _ in range(3):
        jbod.produce(1)
    jbod.start(ME, left=left)
    jbod.run(2_000)
    hosted = jbod.nodes[ME].host.partitions.find(AT)
    assert hosted is not None
    assert (hosted.log.log_end_offset, hosted.directory.path) == (9, "/d0")
    assert found(jbod) == {}


def test_one_that_is_not_there_any_more_is_missing(jbod: Jbod) -> None:
    fill(jbod)
    left = stop(jbod)
    jbod.disks[ME].remove_tree("/d0/t-0")
    jbod.start(ME, left=left)
    assert found(jbod) == {AT: (0, NO_END, Cause.MISSING)}


def test_its_logs_are_checked_from_where_they_may_not_be_durable(jbod: Jbod) -> None:
    """As after a crash, and not from their beginnings: the directory was full."""
    hosted = jbod.nodes[ME].host.partitions.find(AT)
    assert hosted is not None
    assert hosted.log.recovery_point == 6
    jbod.produce(1)
    fill(jbod)
    left = stop(jbod)
    disk, first, last = jbod.disks[ME], f"/d0/t-0/{0:020d}.log", f"/d0/t-0/{6:020d}.log"
    content, torn = disk.read_file(first), disk.read_file(last)
    assert content
    assert torn
    disk.write_file(first, content[:-1] + bytes([content[-1] ^ 1]))
    disk.write_file(last, torn[:-1])
    jbod.start(ME, left=left)
    again = jbod.nodes[ME].host.partitions.find(AT)
    assert again is not None
    assert again.log.log_end_offset == 6


def test_an_older_log_there_is_nothing_beside_the_one_that_the_stop_vouches_for(jbod: Jbod) -> None:
    """The replica was taken from this broker and given back while the directory was offline."""
    fill(jbod)
    jbod.change(replicas=(1, 3), isr=(1, 3), directories=(directory(1, 0), directory(3, 0)))
    jbod.change(replicas=(1, 3, 2), directories=(directory(1, 0), directory(3, 0), directory(2, 1)))
    jbod.run(2_000)
    assert jbod.path(2) == "/d1"
    left = stop(jbod)
    jbod.start(ME, left=left)
    assert found(jbod) == {}
    assert jbod.path(2) == "/d1"
    assert "t-0" not in jbod.disks[ME].list("/d0")


def test_what_may_lie_there_is_named_too(jbod: Jbod) -> None:
    fill(jbod)
    host = jbod.nodes[ME].host
    host.absent = {AT: LOST_DIRECTORY, OTHER: directory(3, 0)}
    assert jbod.nodes[ME].left_offline() == {directory(2, 0): (Left.in_doubt(AT, 0, NO_END),)}


def test_before_there_is_metadata_nobody_knows_what_lies_there(jbod: Jbod) -> None:
    fill(jbod)
    jbod.nodes[ME].has_caught_up = False
    assert jbod.nodes[ME].left_offline() == {}


def test_before_each_replica_was_looked_for_nobody_knows_it_either(jbod: Jbod) -> None:
    fill(jbod)
    replicas = jbod.nodes[ME]
    assert replicas.left_offline()
    replicas.assigned.waiting[AT] = False
    assert replicas.left_offline() == {}
