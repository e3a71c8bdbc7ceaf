"""What a node makes of its disk at start."""

from random import Random

import pytest
from tests.unit.metadata.test_image import scram

from strandline.base.effects import Endpoint
from strandline.base.ids import OFFSETS_TOPIC, TRANSACTION_TOPIC, ZERO_UUID, Uuid
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.broker import due
from strandline.broker.authorizing.guarded import node_of
from strandline.broker.bootstrap_file import write_bootstrap
from strandline.broker.config import NodeConfig
from strandline.broker.parts import Parts, auto_topic, prepare
from strandline.log.directory import DirectoryMeta, write_meta
from strandline.log.evidence.clean_shutdown import Place, write_clean_shutdown
from strandline.metadata.features import ELR_FEATURE, GROUP_FEATURE, METADATA_LEVEL, METADATA_VERSION
from strandline.sim.world.disk import SimDisk
from strandline.txn.config import TxnConfig

WHERE = {"PLAINTEXT": Endpoint("here", 9092), "CONTROLLER": Endpoint("here", 9093)}
CONFIG = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://here:9092,CONTROLLER://here:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@here:9093",
    "log.dirs": "/d0,/d1",
    "metadata.log.dir": "/m",
}
IDS = {root: Uuid(root.encode().ljust(16)) for root in ("/d0", "/d1", "/m")}


ONLY_ONE = Place("cluster", 1, (("/d1", IDS["/d1"]),), 1)


@pytest.fixture
def disk() -> SimDisk:
    made = SimDisk(tuple(IDS))
    for root, directory_id in IDS.items():
        write_meta(made, root, DirectoryMeta("cluster", 1, directory_id))
    return made


def start(disk: SimDisk, **changes: str) -> Parts:
    config = NodeConfig.from_properties(CONFIG | {key.replace("_", "."): text for key, text in changes.items()})
    return prepare(config, disk, Random(1), WHERE, Instant(0))


def test_a_directory_that_cannot_be_read_is_offline(disk: SimDisk) -> None:
    disk.fail("/d0")
    parts = start(disk)
    assert [log_dir.path for log_dir in parts.directories] == ["/d1"]
    assert [(log_dir.path, log_dir.directory_id) for log_dir in parts.dead_directories] == [("/d0", ZERO_UUID)]
    assert parts.identity.log_dirs == (IDS["/d1"],)


def test_a_node_knows_the_number_of_each_listeners_protocol(disk: SimDisk) -> None:
    changes = {
        "listeners": "INSIDE://h:1,OUTSIDE://h:2,CONTROLLER://h:3",
        "listener_security_protocol_map": "INSIDE:SSL,OUTSIDE:SASL_SSL,CONTROLLER:PLAINTEXT",
        "sasl_enabled_mechanisms": "SCRAM-SHA-512",
        "inter_broker_listener_name": "INSIDE",
        "ssl_keystore_location": "/k.pem",
    }
    where = {"INSIDE": Endpoint("h", 1), "OUTSIDE": Endpoint("h", 2), "CONTROLLER": Endpoint("h", 3)}
    config = NodeConfig.from_properties(CONFIG | {key.replace("_", "."): text for key, text in changes.items()})
    assert prepare(config, disk, Random(1), where, Instant(0)).identity.protocols == {"INSIDE": 1, "OUTSIDE": 3}


def test_internal_topics_are_made_as_the_configuration_says(disk: SimDisk) -> None:
    def created(name: str) -> tuple[int, int, dict[str, str | None]]:
        config = start(
            disk,
            offsets_topic_num_partitions="5",
            offsets_topic_replication_factor="2",
            offsets_topic_segment_bytes="1048577",
            transaction_state_log_num_partitions="6",
            transaction_state_log_replication_factor="4",
            transaction_state_log_min_isr="3",
            transaction_state_log_segment_bytes="1048578",
        ).config
        (topic,) = auto_topic([name], config).topics
        return topic.num_partitions, topic.replication_factor, {row.name: row.value for row in topic.configs}

    compacted = {"cleanup.policy": "compact"}
    groups = {**compacted, "compression.type": "producer", "segment.bytes": "1048577"}
    assert created(OFFSETS_TOPIC) == (5, 2, groups)
    safe = {"min.insync.replicas": "3", "unclean.leader.election.enable": "false"}
    transactions = {**compacted, **safe, "compression.type": "uncompressed", "segment.bytes": "1048578"}
    assert created(TRANSACTION_TOPIC) == (6, 4, transactions)
    assert created("t") == (-1, -1, {})


def test_the_transaction_coordinator_is_configured_with_kafkas_keys(disk: SimDisk) -> None:
    assert start(disk).txn_config == TxnConfig()
    changed = start(
        disk,
        transaction_max_timeout_ms="1",
        transaction_abort_timed_out_transaction_cleanup_interval_ms="2",
        transactional_id_expiration_ms="3",
        transaction_remove_expired_transaction_cleanup_interval_ms="4",
        transaction_two_phase_commit_enable="true",
    )
    assert changed.txn_config == TxnConfig(1, 2, 3, 4, two_phase_commit_enable=True)


def test_with_no_directory_left_it_does_not_start(disk: SimDisk) -> None:
    disk.fail("/d0")
    disk.fail("/d1")
    with pytest.raises(DiskError):
        start(disk)


def test_without_the_metadata_logs_directory_it_does_not_start(disk: SimDisk) -> None:
    disk.fail("/d0")
    with pytest.raises(DiskError):
        start(disk, metadata_log_dir="/d0")


def test_one_that_is_not_formatted_is_a_mistake_and_not_a_failure(disk: SimDisk) -> None:
    disk.wipe("/d0")
    with pytest.raises(DiskError, match="format it first"):
        start(disk)


def test_a_stop_without_a_directory_was_clean_for_those_that_there_were(disk: SimDisk) -> None:
    disk.fail("/d0")
    write_clean_shutdown(disk, ONLY_ONE, 7)
    assert start(disk).identity.previous_broker_epoch == 7


def test_a_directory_that_is_back_makes_the_stop_unclean(disk: SimDisk) -> None:
    """Nobody knows what it lost when it failed (T27)."""
    write_clean_shutdown(disk, ONLY_ONE, 7)
    parts = start(disk)
    assert parts.identity.previous_broker_epoch == -1
    assert not parts.clean_start


def test_a_dead_directory_that_is_no_longer_named_makes_the_stop_unclean(disk: SimDisk) -> None:
    """Its replicas begin empty in another one (T28): nobody may take them for what they were."""
    disk.fail("/d0")
    write_clean_shutdown(disk, ONLY_ONE, 7)
    assert start(disk, log_dirs="/d1").identity.previous_broker_epoch == -1


def test_a_new_cluster_begins_as_the_bootstrap_file_says(disk: SimDisk) -> None:
    write_bootstrap(disk, "/m", {METADATA_VERSION: METADATA_LEVEL}, Instant(0))
    assert start(disk, eligible_leader_replicas_enabled="true").initial_features == {METADATA_VERSION: METADATA_LEVEL}


@pytest.mark.parametrize(("said", "level"), [("true", 1), ("false", 0)])
def test_without_a_bootstrap_file_a_new_cluster_begins_as_the_nodes_file_says(
    disk: SimDisk, said: str, level: int
) -> None:
    assert start(disk, eligible_leader_replicas_enabled=said).initial_features.get(ELR_FEATURE, 0) == level


def test_what_only_another_program_knows_is_not_in_force(disk: SimDisk) -> None:
    """Kafka's own tool writes the file with all of Kafka's features, at a metadata.version of its release."""
    write_bootstrap(disk, "/m", {METADATA_VERSION: 29, "share.version": 1, ELR_FEATURE: 1}, Instant(0))
    assert start(disk).initial_features == {METADATA_VERSION: METADATA_LEVEL, ELR_FEATURE: 1}


def test_a_new_cluster_begins_as_the_first_snapshot_of_its_metadata_log_says(disk: SimDisk) -> None:
    """Where Kafka's own tool of newer releases formatted the directory, as it was told to without ELR."""
    write_bootstrap(disk, "/m", {METADATA_VERSION: 29, GROUP_FEATURE: 1}, Instant(0))
    disk.make_directory("/m/__cluster_metadata-0")
    disk.rename("/m/bootstrap.checkpoint", "/m/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint")
    assert start(disk).initial_features == {METADATA_VERSION: METADATA_LEVEL, GROUP_FEATURE: 1}


def test_a_new_cluster_begins_with_the_users_of_the_bootstrap_file(disk: SimDisk) -> None:
    assert start(disk).initial_users == ()
    users = (scram("alice"), scram("bob", mechanism=2))
    write_bootstrap(disk, "/m", {METADATA_VERSION: METADATA_LEVEL}, Instant(0), users)
    parts = start(disk)
    assert parts.controller_config.initial_users == users
    assert parts.initial_features == {METADATA_VERSION: METADATA_LEVEL}
    write_bootstrap(disk, "/m", {}, Instant(0), [scram("alice", mechanism=7)])
    with pytest.raises(DiskError, match="credential of mechanism 7"):
        start(disk)


def test_a_bootstrap_file_that_is_damaged_ends_the_start(disk: SimDisk) -> None:
    write_bootstrap(disk, "/m", {ELR_FEATURE: 2}, Instant(0))
    with pytest.raises(DiskError, match="cannot begin with level 2"):
        start(disk)
    content = disk.read_file("/m/bootstrap.checkpoint")
    assert content is not None
    disk.write_file("/m/bootstrap.checkpoint", content[:-1])
    with pytest.raises(DiskError, match="is damaged"):
        start(disk)


def test_a_node_names_the_parts_whose_deadline_has_come(disk: SimDisk) -> None:
    node = node_of(start(disk), Instant(0))
    node.start(Instant(0))

    def names(now: int) -> list[str]:
        return due.names(node.quorum, node.forwarding, node.controller, node.broker, Instant(now))

    assert names(node.deadline() - 1) == []
    assert names(node.deadline())
    assert {"quorum", "lifecycle", "Replicas.retain", "Checkpoints.save_high_watermarks"} <= set(names(3_600_000))
