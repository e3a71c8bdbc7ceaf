"""What lies on disk: checkpoints, what is made durable and when, placement, retention."""

import random
from typing import Any

import pytest
from tests.unit.replica.conftest import AT as AT_ID
from tests.unit.replica.conftest import World, a_batch
from tests.unit.replica.storage.test_directories import HOME, Jbod

from strandline.base.effects import Remove, Save, Sync, Synced
from strandline.base.ids import METADATA_TOPIC_ID, NodeId, TopicPartition
from strandline.log.checkpoints import parse_offsets
from strandline.log.directory import write_partition_metadata
from strandline.log.log import Log
from strandline.metadata import records as r
from strandline.metadata.image import TOPIC_RESOURCE, UNASSIGNED_DIRECTORY
from strandline.replica.config import ReplicaConfig
from strandline.replica.hosting.follower import Cut
from strandline.replica.storage.flushing import Flush

AT = TopicPartition("t", 0)


def checkpoint(world: Any, node: int, name: str) -> dict[TopicPartition, int]:
    return parse_offsets(world.disks[node].read_file(f"/data{node}/{name}"))


def test_high_watermarks_are_saved_every_five_seconds_if_they_have_changed(world: Any) -> None:
    world.create(replicas=(1,))
    world.produce(1, 3)
    world.run(5_000)
    assert checkpoint(world, 1, "replication-offset-checkpoint") == {AT: 3}
    world.sent_by.clear()
    world.run(20_000)
    assert not [effect for _, effect in world.sent_by if isinstance(effect, Save)]


def test_a_recovery_point_is_saved_only_after_the_sync(world: Any) -> None:
    world.create(replicas=(1,))
    world.produce(1, 3)
    effects = world.nodes[1].storage.flushing.flush(world.now)
    (sync,) = effects
    assert isinstance(sync, Sync)
    assert "/data1/t-0/00000000000000000000.log" in sync.paths
    assert "/data1/t-0/partition.metadata" in sync.paths
    world.produce(1, 2)  # after the sync was asked for: not covered by it
    saves = world.nodes[1].step(Synced(sync.token), world.now)
    assert [
        parse_offsets(save.content) for save in saves if save.path.endswith("recovery-point-offset-checkpoint")
    ] == [{AT: 3}]


def test_a_sync_says_nothing_about_what_was_truncated_meanwhile(world: Any) -> None:
    world.create(replicas=(1, 2))
    world.run(1_000)
    world.produce(1, 3)
    world.run(1_000)
    (sync,) = world.nodes[2].storage.flushing.flush(world.now)
    hosted = world.nodes[2].host.partitions.named("t", 0)
    hosted.role.perform(Cut(0, False, "this is a test"), world.now)
    world.nodes[2].step(Synced(sync.token), world.now)
    assert hosted.log.recovery_point == 0


def test_a_sync_says_nothing_about_what_was_cut_and_written_anew_meanwhile(world: Any) -> None:
    """The log ends where it did, with other records."""
    world.create(replicas=(1, 2))
    world.run(1_000)
    world.produce(1, 3)
    world.run(1_000)
    (sync,) = world.nodes[2].storage.flushing.flush(world.now)
    hosted = world.nodes[2].host.partitions.named("t", 0)
    hosted.role.perform(Cut(0, False, "this is a test"), world.now)
    assert hosted.log.append_as_follower(a_batch(3, base_offset=0, leader_epoch=0), 0, world.now) == 3
    world.nodes[2].step(Synced(sync.token), world.now)
    assert hosted.log.recovery_point == 0


def test_a_sync_of_one_role_says_nothing_about_what_was_cut_in_the_next(world: Any) -> None:
    """Cuts are counted in a role: two roles may have made as many."""
    world.create(replicas=(1, 2, 3))
    world.run(1_000)
    world.produce(1, 3)
    world.run(1_000)
    (sync,) = world.nodes[3].storage.flushing.flush(world.now)
    first = world.nodes[3].host.partitions.named("t", 0).role
    world.cut = {2}
    world.change(leader=2)
    hosted = world.nodes[3].host.partitions.named("t", 0)
    assert (hosted.role is first, hosted.log.log_end_offset) == (False, 3)
    first.cuts = 1  # before the flush
    hosted.role.perform(Cut(0, False, "this is a test"), world.now)
    assert hosted.role.cuts == first.cuts
    world.nodes[3].storage.flushing.in_flight[AT_ID] = Flush(3, first, first.cuts)
    assert hosted.log.append_as_follower(a_batch(3, base_offset=0, leader_epoch=0), 0, world.now) == 3
    world.nodes[3].step(Synced(sync.token), world.now)
    assert hosted.log.recovery_point == 0


def test_a_saved_recovery_point_falls_with_the_log_that_is_cut(world: Any) -> None:
    """Else, after a power loss, it would vouch for batches that were appended after the cut and never synced."""
    world.create()
    world.run(1_000)
    world.cut = {1}
    world.produce(1, 10, acks=1)  # only the old leader has these
    (sync,) = world.nodes[1].storage.flushing.flush(world.now)
    for effect in world.nodes[1].step(Synced(sync.token), world.now):
        world.perform(NodeId(1), [effect])
    assert checkpoint(world, 1, "recovery-point-offset-checkpoint") == {AT: 10}
    world.change(leader=2, isr=(2, 3), skip=(1,))
    world.produce(2, 3)
    fallen = []
    sync_now = world.disks[1].sync

    def note(paths: Any) -> None:
        fallen.append(checkpoint(world, 1, "recovery-point-offset-checkpoint")[AT])
        sync_now(paths)

    world.disks[1].sync = note
    world.cut = set()
    world.catch_up(NodeId(1))
    world.run(3_000)
    assert world.ends() == [3, 3, 3]
    assert fallen[0] == 0
    assert checkpoint(world, 1, "recovery-point-offset-checkpoint") == {AT: 0}


def test_a_save_on_its_way_does_not_bring_the_recovery_point_back_that_a_cut_has_lowered(world: World) -> None:
    """The flusher's thread may come to it only after the cut, and then the power may go."""
    world.create()
    world.run(1_000)
    world.cut = {NodeId(1)}
    world.produce(1, 10, acks=1)  # only the old leader has these
    (sync,) = world.nodes[NodeId(1)].storage.flushing.flush(world.now)
    assert isinstance(sync, Sync)
    on_its_way = world.nodes[NodeId(1)].step(Synced(sync.token), world.now)
    older = {save.path: save.content for save in on_its_way if isinstance(save, Save)}
    assert next(iter(older)) == "/data1/topic-id-checkpoint", "whose they are is known before anything vouches for them"
    assert parse_offsets(older["/data1/recovery-point-offset-checkpoint"]) == {AT: 10}
    world.change(leader=2, isr=(2, 3), skip=(1,))
    world.produce(2, 3)
    world.cut = set()
    world.catch_up(NodeId(1))
    world.run(100)
    assert world.row(1)[3] < 10, "it was cut"
    lowered = checkpoint(world, 1, "recovery-point-offset-checkpoint")
    assert lowered == {AT: 0}
    world.perform(NodeId(1), on_its_way)
    assert checkpoint(world, 1, "recovery-point-offset-checkpoint") == lowered


def test_a_recovery_that_cuts_a_log_lowers_its_saved_recovery_point(world: World) -> None:
    """Or the next one would trust what was appended after it and never synced."""
    world.create(replicas=(1,))
    world.produce(1, 10)
    (sync,) = world.nodes[NodeId(1)].storage.flushing.flush(world.now)
    assert isinstance(sync, Sync)
    world.perform(NodeId(1), world.nodes[NodeId(1)].step(Synced(sync.token), world.now))
    assert checkpoint(world, 1, "recovery-point-offset-checkpoint") == {AT: 10}
    world.kill(1)
    log = world.disks[NodeId(1)].files["/data1/t-0/00000000000000000000.log"]
    log.truncate(log.size() - 1)
    world.start(NodeId(1), clean=False)
    assert world.row(1)[3] == 0
    assert checkpoint(world, 1, "recovery-point-offset-checkpoint") == {AT: 0}


def test_a_log_goes_to_the_directory_that_metadata_names(world: Any) -> None:
    world.create(replicas=(1,))
    assert world.disks[1].exists("/data1/t-0")
    world.commit(r.RemoveTopicRecord(topic_id=world.image.topic_ids["t"]))
    assert [name for name in world.disks[1].list("/data1") if name.startswith("t-0")] == []


def deleted_logs(world: Any) -> list[str]:
    return [name for name in world.disks[1].list("/data1") if name.endswith("-delete")]


def test_a_deleted_log_is_renamed_at_once_and_its_files_are_somebody_elses_work(world: Any) -> None:
    """A topic has thousands of them: removed in the step, they would keep the node from its heartbeats."""
    world.create(replicas=(1,))
    world.produce(1, 3)
    topic_id = world.image.topic_ids["t"]
    world.nodes[1].assigned.delete(world.nodes[1].host.partitions.named("t", 0), world.now)
    (deleted,) = deleted_logs(world)
    assert deleted.startswith(f"t-0.{topic_id.hex()}.")
    assert world.disks[1].list(f"/data1/{deleted}") != []
    (remove,) = world.nodes[1].flush(world.now)
    assert remove == Remove((f"/data1/{deleted}",))
    assert world.nodes[1].flush(world.now) == []


def test_a_partition_that_comes_back_and_goes_again_has_two_deleted_logs(world: Any) -> None:
    world.create(replicas=(1,))
    replicas = world.nodes[1]
    for _ in range(2):
        hosted = replicas.host.partitions.named("t", 0)
        if hosted is None:
            hosted, _ = replicas.assigned.create(AT_ID, UNASSIGNED_DIRECTORY, True, world.now)
        replicas.assigned.delete(hosted, world.now)
    assert len(deleted_logs(world)) == 2
    assert not replicas.host.directories.offline


def test_a_deleted_log_that_was_not_removed_is_removed_by_the_next_start(world: Any) -> None:
    world.create(replicas=(1,))
    world.nodes[1].assigned.delete(world.nodes[1].host.partitions.named("t", 0), world.now)
    assert len(deleted_logs(world)) == 1
    world.kill(1)
    world.start(NodeId(1))
    assert deleted_logs(world) == []


def test_a_deleted_log_has_a_name_that_a_file_system_takes(world: Any) -> None:
    storage = world.nodes[1].storage
    entry = f"{'t' * 249}-12345"
    world.disks[1].make_directory(f"/data1/{entry}")
    storage.deleted.rename(world.nodes[1].host.directories.live[0], entry, AT_ID)
    (deleted,) = deleted_logs(world)
    assert len(deleted) <= 255


def test_retention_moves_the_log_start_and_followers_hear_of_it(world: Any) -> None:
    world.create(retention_ms="60000", segment_bytes="1048576")
    world.run(1_000)
    for _ in range(3):
        world.produce(1, 5)
    world.run(600_000)
    starts = [world.nodes[node].host.partitions.named("t", 0).log.log_start_offset for node in (1, 2, 3)]
    assert starts == [15, 15, 15]
    assert world.consume(1, 15)().log_start_offset == 15


def test_a_changed_configuration_reaches_the_log(world: Any) -> None:
    world.create(replicas=(1,))
    world.commit(r.ConfigRecord(resource_type=2, resource_name="t", name="max.message.bytes", value="10"))
    assert world.nodes[1].host.partitions.named("t", 0).log.config.max_message_bytes == 10
    assert world.produce(1)().error_code == 10


def test_how_long_a_producer_may_be_idle_is_a_setting_of_the_node(world: Any) -> None:
    storage = world.nodes[1].storage
    assert storage.configs.of("t").producer_id_expiration_ms == 24 * 3600 * 1000
    storage.host.static = {**storage.host.static, "producer.id.expiration.ms": 5}
    storage.configs.metadata_changed()  # as when metadata moves
    assert storage.configs.of("t").producer_id_expiration_ms == 5


def test_a_broker_has_its_own_span_before_the_clusters_and_the_clusters_before_its_files(world: Any) -> None:
    storage, key = world.nodes[1].storage, "producer.id.expiration.ms"
    storage.host.static = {**storage.host.static, key: 5}
    for broker, value, expected in (("", "20", 20), ("1", "10", 10), ("", "30", 10), ("2", "40", 10), ("1", None, 30)):
        world.commit(r.ConfigRecord(resource_type=4, resource_name=broker, name=key, value=value))
        assert storage.configs.of("t").producer_id_expiration_ms == expected


def test_logs_of_a_topic_share_their_configuration_until_it_changes(world: Any) -> None:
    world.create(replicas=(1,))
    log = world.nodes[1].host.partitions.named("t", 0).log
    assert world.nodes[1].storage.configs.of("t") is log.config
    world.commit(r.ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="77"))
    assert log.config.retention_ms == 77
    assert world.nodes[1].storage.configs.of("t").retention_ms == 77


def test_what_one_broker_is_given_reaches_its_own_logs_alone_and_at_once(world: Any) -> None:
    world.create()
    logs = {node: world.nodes[node].host.partitions.named("t", 0).log for node in (1, 2)}

    def give(broker: str, name: str, value: str | None) -> list[int]:
        world.commit(r.ConfigRecord(resource_type=4, resource_name=broker, name=name, value=value))
        return [logs[node].config.max_message_bytes for node in (1, 2)]

    assert give("", "message.max.bytes", "20") == [20, 20]
    assert give("1", "message.max.bytes", "10") == [10, 20]
    assert give("", "message.max.bytes", "30") == [10, 30]
    assert give("1", "message.max.bytes", None) == [30, 30]
    give("2", "producer.id.expiration.ms", "7")
    assert [logs[node].config.producer_id_expiration_ms for node in (1, 2)] == [24 * 3600 * 1000, 7]


def test_an_unclean_restart_keeps_what_is_whole(world: Any) -> None:
    world.create(replicas=(1,))
    world.produce(1, 3)
    world.kill(1)
    world.disks[1].files["/data1/t-0/00000000000000000000.log"].content += b"torn"
    world.start(NodeId(1), clean=False)
    assert world.row(1)[2:4] == (3, 3)


def test_the_metadata_log_is_no_stray(world: Any) -> None:
    disk = world.disks[1]
    disk.make_directory("/data1/__cluster_metadata-0")
    write_partition_metadata(disk, "/data1/__cluster_metadata-0", METADATA_TOPIC_ID)
    world.kill(1)
    world.start(NodeId(1))
    world.perform(NodeId(1), world.nodes[1].delete_strays(world.now))
    assert disk.exists("/data1/__cluster_metadata-0/partition.metadata")


def test_a_log_that_was_reassigned_away_and_back_outlives_the_replay_of_that_history(world: Any) -> None:
    world.create(replicas=(1, 2))
    world.run(1_000)
    world.produce(1, 3)
    world.run(1_000)
    world.kill(2)
    world.change(replicas=(1,), isr=(1,))
    world.change(replicas=(1, 2))
    world.cut = {2}
    world.start(NodeId(2), replay_each=True)
    assert world.row(2)[3] == 3


LOG = "t-0/00000000000000000000.log"


def synced(world: Any, node: int) -> int:
    """How often the log was."""
    return sum(path.endswith(LOG) for path in world.disks[node].synced)


def test_with_flush_messages_no_record_is_acknowledged_before_replicas_have_it_on_disk(world: Any) -> None:
    world.create(flush_messages="3")
    assert world.produce(1, 2)().error_code == 0
    assert [synced(world, node) for node in (1, 2, 3)] == [0, 0, 0], "not so many yet"
    world.produce(1, 1)
    assert [synced(world, node) for node in (1, 2, 3)] == [1, 1, 1]
    assert world.nodes[2].host.partitions.named("t", 0).log.recovery_point == 3
    world.produce(1, 4)
    assert [synced(world, node) for node in (1, 2, 3)] == [2, 2, 2]


@pytest.mark.parametrize("seed", range(5))
def test_with_flush_messages_what_is_acknowledged_outlives_a_power_cut_of_all_replicas(seed: int) -> None:
    """KIP-966, for those who fsync: then an acknowledged record is on the disks and not in their caches alone."""
    jbod = Jbod(2)
    jbod.create_in(*HOME[:2])
    jbod.commit(r.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="flush.messages", value="1"))
    for _ in range(3):
        assert jbod.produce(1, 2)().error_code == 0
    for node in (NodeId(1), NodeId(2)):
        del jbod.nodes[node]
        jbod.disks[node].crash(random.Random(seed))  # type: ignore[attr-defined]
        jbod.start(node, clean=False)
        hosted = jbod.nodes[node].host.partitions.named("t", 0)
        assert hosted is not None
        assert hosted.log.log_end_offset == 6


def test_without_flush_messages_the_disk_is_never_waited_for(world: Any) -> None:
    world.create()
    assert world.produce(1, 100)().error_code == 0
    assert [synced(world, node) for node in (1, 2, 3)] == [0, 0, 0]


def test_flush_ms_forces_old_records_to_disk_long_before_the_checkpoint() -> None:
    world = World(1, ReplicaConfig(flush_scheduler_interval_ms=100))
    world.create(replicas=(1,), flush_ms="1000")
    world.run(1_000)
    world.produce(1, 3)
    log = hosted_log(world)
    world.run(900)
    assert log.recovery_point == 0
    world.run(400)
    assert log.recovery_point == 3
    world.sent_by.clear()
    world.run(10_000)
    assert not [effect for _, effect in world.sent_by if isinstance(effect, Sync)], "nothing is left to do"


def test_flush_ms_alone_flushes_nothing_for_nobody_looks() -> None:
    """As in Kafka: log.flush.scheduler.interval.ms is never, unless it is set."""
    world = World(1)
    world.create(replicas=(1,), flush_ms="0")
    world.produce(1, 3)
    world.run(30_000)
    assert hosted_log(world).recovery_point == 0


def hosted_log(world: World) -> Log:
    hosted = world.nodes[NodeId(1)].host.partitions.named("t", 0)
    assert hosted is not None
    return hosted.log


def test_log_starts_are_saved_at_a_pace_of_their_own() -> None:
    config = ReplicaConfig(log_start_checkpoint_interval_ms=500, recovery_point_checkpoint_interval_ms=10**9)
    world = World(1, config)
    world.create(replicas=(1,))
    world.produce(1, 5)
    hosted_log(world).advance_log_start(3)
    world.run(1_000)
    assert checkpoint(world, 1, "log-start-offset-checkpoint") == {AT: 3}
