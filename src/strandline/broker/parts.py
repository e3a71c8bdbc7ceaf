"""What a node is made of, put together from its configuration and what its disk says about its past."""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from strandline.base.effects import Endpoint
from strandline.base.ids import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTION_TOPIC, ZERO_UUID, NodeId, Uuid
from strandline.base.ports import Disk, DiskError, Rng
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.broker.bootstrap_file import initial_features, initial_users
from strandline.broker.config import NodeConfig
from strandline.broker.lifecycle import Identity, LifecycleConfig
from strandline.broker.quotas.throttling import QuotaConfig
from strandline.controller.basis import ControllerConfig
from strandline.controller.controller import MetadataWriter
from strandline.coordination.partitioning import TEXT_BYTES_MAX
from strandline.group.config import GroupConfig
from strandline.log.directory import META_PROPERTIES, DirectoryMeta, read_meta
from strandline.log.evidence.clean_shutdown import LogsLeft, Place, Stop, take_clean_shutdown
from strandline.log.evidence.wholeness import Vouched, take_vouched
from strandline.metadata.features import READABLE_FEATURES
from strandline.metadata.records import UserScramCredentialRecord
from strandline.metadata.topic_names import why_illegal
from strandline.quorum.config import QuorumConfig
from strandline.quorum.storage.metadata_log import CONFIG as METADATA_LOG
from strandline.quorum.storage.metadata_log import MetadataLog
from strandline.replica.config import LogDir, ReplicaConfig
from strandline.security.protocols import NUMBERS
from strandline.security.secret import ClusterSecret
from strandline.txn.config import TxnConfig
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest


class Parts(Value, frozen=True):
    """What `Node` needs to know to build its machines."""

    config: NodeConfig
    disk: Disk
    rng: Rng
    metadata_log: MetadataLog
    directories: tuple[LogDir, ...]
    dead_directories: tuple[LogDir, ...]  # that could not be read; their ids are not known
    metadata_directory_id: Uuid
    identity: Identity
    voters: dict[NodeId, Endpoint]
    clean_start: bool
    left: LogsLeft | None  # how the last stop left the logs, if it was clean
    place: Place
    vouched: Vouched | None  # which logs are whole, as far as it is known
    initial_features: dict[str, int]
    secret: ClusterSecret | None  # None: nodes need not prove that they are
    initial_users: tuple[UserScramCredentialRecord, ...]
    stopwatch: Callable[[], int]  # in nanoseconds, for quotas of requests' time

    @property
    def lifecycle_config(self) -> LifecycleConfig:
        return LifecycleConfig(
            heartbeat_interval_ms=self.config.integer("broker.heartbeat.interval.ms"),
            session_timeout_ms=self.config.integer("broker.session.timeout.ms"),
            directory_failure_timeout_ms=self.config.integer("log.dir.failure.timeout.ms"),
            registration_timeout_ms=self.config.integer("initial.broker.registration.timeout.ms"),
        )

    @property
    def quorum_config(self) -> QuorumConfig:
        return QuorumConfig(
            election_timeout_ms=self.config.integer("controller.quorum.election.timeout.ms"),
            fetch_timeout_ms=self.config.integer("controller.quorum.fetch.timeout.ms"),
            election_backoff_max_ms=self.config.integer("controller.quorum.election.backoff.max.ms"),
            request_timeout_ms=self.config.integer("controller.quorum.request.timeout.ms"),
            fetch_bytes_max=self.config.integer("controller.quorum.fetch.max.bytes"),
            snapshot_chunk_bytes_max=self.config.integer("controller.quorum.fetch.snapshot.max.bytes"),
        )

    @property
    def controller_config(self) -> ControllerConfig:
        return ControllerConfig(
            cluster_id=self.identity.cluster_id,
            session_timeout_ms=self.config.integer("broker.session.timeout.ms"),
            default_num_partitions=self.config.integer("num.partitions"),
            default_replication_factor=self.config.integer("default.replication.factor"),
            is_topic_deletion_enabled=self.config.boolean("delete.topic.enable"),
            is_leader_rebalance_enabled=self.config.boolean("auto.leader.rebalance.enable"),
            leader_imbalance_check_ms=1000 * self.config.integer("leader.imbalance.check.interval.seconds"),
            unclean_election_check_ms=self.config.integer("unclean.leader.election.interval.ms"),
            is_recovery_managed=self.config.boolean("unclean.recovery.manager.enabled"),
            recovery_timeout_ms=self.config.integer("unclean.recovery.timeout.ms"),
            initial_features=self.initial_features,
            initial_users=self.initial_users,
        )

    @property
    def quota_config(self) -> QuotaConfig:
        return QuotaConfig(
            window_count=self.config.integer("quota.window.num"),
            window_ms=1000 * self.config.integer("quota.window.size.seconds"),
            mutation_window_count=self.config.integer("controller.quota.window.num"),
            mutation_window_ms=1000 * self.config.integer("controller.quota.window.size.seconds"),
            default_partitions=self.config.integer("num.partitions"),
        )

    @property
    def replica_config(self) -> ReplicaConfig:
        return ReplicaConfig(
            lag_time_max_ms=self.config.integer("replica.lag.time.max.ms"),
            fetch_wait_max_ms=self.config.integer("replica.fetch.wait.max.ms"),
            fetch_min_bytes=self.config.integer("replica.fetch.min.bytes"),
            fetch_max_bytes=self.config.integer("replica.fetch.max.bytes"),
            fetch_response_max_bytes=self.config.integer("replica.fetch.response.max.bytes"),
            fetch_backoff_ms=self.config.integer("replica.fetch.backoff.ms"),
            high_watermark_checkpoint_interval_ms=self.config.integer("replica.high.watermark.checkpoint.interval.ms"),
            recovery_point_checkpoint_interval_ms=self.config.integer("log.flush.offset.checkpoint.interval.ms"),
            retention_check_interval_ms=self.config.integer("log.retention.check.interval.ms"),
            log_start_checkpoint_interval_ms=self.config.integer("log.flush.start.offset.checkpoint.interval.ms"),
            flush_scheduler_interval_ms=self.config.integer("log.flush.scheduler.interval.ms"),
            fetch_timeout_ms=self.config.integer("replica.socket.timeout.ms"),
            alter_partition_timeout_ms=self.config.integer("controller.socket.timeout.ms"),
            internal_append_timeout_ms=self.config.integer("offsets.commit.timeout.ms"),
            answer_bytes_max=self.config.integer("fetch.max.bytes"),
            queued_answer_bytes_max=self.config.integer("strandline.queued.response.max.bytes"),
            fetch_session_slots=self.config.integer("max.incremental.fetch.session.cache.slots"),
            replica_selector=self.config.text("replica.selector.class"),
            leader_throttled_rate=self.config.integer("leader.replication.throttled.rate"),
            follower_throttled_rate=self.config.integer("follower.replication.throttled.rate"),
            alter_log_dirs_rate=self.config.integer("replica.alter.log.dirs.io.max.bytes.per.second"),
            alter_log_dirs_windows=self.config.integer("alter.log.dirs.replication.quota.window.num"),
            alter_log_dirs_window_ms=1000 * self.config.integer("alter.log.dirs.replication.quota.window.size.seconds"),
            quota_windows=self.config.integer("replication.quota.window.num"),
            quota_window_ms=1000 * self.config.integer("replication.quota.window.size.seconds"),
            inter_broker_listener=self.config.inter_broker_listener_name,
        )

    @property
    def group_config(self) -> GroupConfig:
        return GroupConfig(
            min_session_timeout_ms=self.config.integer("group.min.session.timeout.ms"),
            max_session_timeout_ms=self.config.integer("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=self.config.integer("group.initial.rebalance.delay.ms"),
            max_size=self.config.integer("group.max.size"),
            consumer_session_timeout_ms=self.config.integer("group.consumer.session.timeout.ms"),
            consumer_heartbeat_interval_ms=self.config.integer("group.consumer.heartbeat.interval.ms"),
            consumer_max_size=self.config.integer("group.consumer.max.size"),
            consumer_assignors=self.config.texts("group.consumer.assignors"),
            consumer_migration_policy=self.config.text("group.consumer.migration.policy"),
            is_consumer_protocol_enabled="consumer" in self.config.texts("group.coordinator.rebalance.protocols"),
            offsets_retention_ms=60_000 * self.config.integer("offsets.retention.minutes"),
            offsets_retention_check_ms=self.config.integer("offsets.retention.check.interval.ms"),
            offset_metadata_max_bytes=min(self.config.integer("offset.metadata.max.bytes"), TEXT_BYTES_MAX // 4),
        )

    @property
    def txn_config(self) -> TxnConfig:
        return TxnConfig(
            max_timeout_ms=self.config.integer("transaction.max.timeout.ms"),
            abort_interval_ms=self.config.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            id_expiration_ms=self.config.integer("transactional.id.expiration.ms"),
            remove_interval_ms=self.config.integer("transaction.remove.expired.transaction.cleanup.interval.ms"),
            two_phase_commit_enable=self.config.boolean("transaction.two.phase.commit.enable"),
        )


def stopped() -> int:
    """A stopwatch by which nothing takes time."""
    return 0


def prepare(
    config: NodeConfig,
    disk: Disk,
    rng: Rng,
    where: Mapping[str, Endpoint],
    now: Instant,
    secret: ClusterSecret | None = None,
    stopwatch: Callable[[], int] = stopped,
) -> Parts:
    """Read what the disk knows. `where`: each listener's real endpoint, by name.

    A log directory that cannot be read is offline, if there is another one. Raises DiskError if a directory is not
    formatted, or belongs to another cluster or node, and if the metadata log's cannot be read.
    """
    live = tuple(path for path in config.log_dirs if is_readable(disk, path))
    paths = sorted({*(live or config.log_dirs), config.metadata_log_dir})
    metas = {path: formatted(disk, path, config.node_id) for path in paths}
    clusters = {meta.cluster_id for meta in metas.values()}
    if len(clusters) > 1:
        raise DiskError(f"the log directories belong to different clusters: {', '.join(sorted(clusters))}")
    cluster_id = clusters.pop()
    assert not clusters
    assert config.metadata_log_dir in metas
    directories = tuple((path, metas[path].directory_id) for path in live)
    place = Place(cluster_id, config.node_id, directories, len(config.log_dirs) - len(live))
    stop = take_clean_shutdown(disk, place) if config.is_broker else None
    vouched = take_vouched(disk, place, is_clean=stop is not None) if config.is_broker else None
    metadata_directory_id = metas[config.metadata_log_dir].directory_id
    return Parts(
        config=config,
        disk=disk,
        rng=rng,
        metadata_log=open_metadata_log(disk, config, now),
        directories=tuple(LogDir(path, metas[path].directory_id) for path in live),
        dead_directories=tuple(LogDir(path, ZERO_UUID) for path in config.log_dirs if path not in live),
        metadata_directory_id=metadata_directory_id,
        identity=identity_of(config, place, where, Uuid(rng.randbytes(16)), stop, vouched),
        voters={voter.node_id: voter.endpoint for voter in config.voters},
        clean_start=stop is not None,  # guard: every-start-counts-as-clean
        left=None if stop is None else stop.logs,
        place=place,
        vouched=vouched,
        initial_features=initial_features(disk, config),
        secret=secret,
        initial_users=initial_users(disk, config),
        stopwatch=stopwatch,
    )


def open_metadata_log(disk: Disk, config: NodeConfig, now: Instant) -> MetadataLog:
    return MetadataLog.open(
        disk,
        config.metadata_log_dir,
        now,
        replace(
            METADATA_LOG,
            segment_bytes=config.integer("metadata.log.segment.bytes"),
            segment_ms=config.integer("metadata.log.segment.ms"),
        ),
        has_others=any(voter.node_id != config.node_id for voter in config.voters),
    )


def identity_of(
    config: NodeConfig,
    place: Place,
    where: Mapping[str, Endpoint],
    incarnation: Uuid,
    stop: Stop | None,
    vouched: Vouched | None,
) -> Identity:
    advertised = {at.name: at.endpoint for at in config.advertised_listeners}
    assert advertised or not config.is_broker, "nobody could reach it"
    return Identity(
        node_id=config.node_id,
        cluster_id=place.cluster_id,
        incarnation_id=incarnation,
        log_dirs=tuple(directory_id for _, directory_id in place.directories),
        listeners={
            name: Endpoint(at.host, at.port or where[name].port)
            for name, at in advertised.items()
            if name not in config.controller_listener_names
        },
        protocols={name: NUMBERS[config.protocol_of(name)] for name in advertised if name in config.protocols},
        rack=config.text("broker.rack") or None,
        previous_broker_epoch=-1 if stop is None else stop.broker_epoch,
        features=READABLE_FEATURES,
        whole_after=ZERO_UUID if vouched is None else vouched.process,
    )


def is_readable(disk: Disk, path: str) -> bool:
    try:
        disk.read_file(f"{path}/{META_PROPERTIES}")
    except DiskError:
        return False
    return True


def formatted(disk: Disk, path: str, node_id: NodeId) -> DirectoryMeta:
    meta = read_meta(disk, path)
    if meta is None:
        raise DiskError(f"no meta.properties in {path}: format it first, with `strandline format`")
    if meta.node_id != node_id:
        raise DiskError(f"{path} was formatted for node.id {meta.node_id}, and this is node.id {node_id}")
    return meta


def missing_topics(names: Sequence[str], config: NodeConfig) -> CreateTopicsRequest | None:
    """Those that are created when a client names them; coordinators need theirs whatever auto.create.topics.enable
    says. None: none of them."""
    wanted = [name for name in names if name in INTERNAL_TOPICS or config.auto_create_topics_enable]
    return auto_topic(wanted, config) if wanted else None


def auto_topic(names: Sequence[str], config: NodeConfig) -> CreateTopicsRequest:
    """The topics that a client named without creating them, with the broker's defaults."""
    assert names
    return CreateTopicsRequest(topics=tuple(topic_to_create(name, config) for name in names), timeout_ms=5000)


def topic_to_create(name: str, config: NodeConfig) -> CreatableTopic:
    """Kafka gives an internal topic the same settings."""
    assert why_illegal(name) is None, "who asked for it was refused"
    if name == OFFSETS_TOPIC:
        keys = "offsets.topic"
        settings = {"cleanup.policy": "compact", "compression.type": "producer"}
    elif name == TRANSACTION_TOPIC:
        keys = "transaction.state.log"
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.integer(f"{keys}.min.isr")),
            "unclean.leader.election.enable": "false",
        }
    else:
        return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    settings["segment.bytes"] = str(config.integer(f"{keys}.segment.bytes"))
    return CreatableTopic(
        name=name,
        num_partitions=config.integer(f"{keys}.num.partitions"),
        replication_factor=config.integer(f"{keys}.replication.factor"),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in settings.items()),
    )


__all__ = ["MetadataWriter", "Parts", "auto_topic", "missing_topics", "prepare"]
