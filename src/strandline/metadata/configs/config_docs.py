"""What each configuration key is for, in one or two sentences; DescribeConfigs and docs/configs.md have it from here.

Invariants (tested):
  - every key of the three tables has its text; a broker's key that is a topic's default has that topic key's;
  - a key that nothing reads says so, and why.
"""

from strandline.metadata.configs.config_key import ConfigKey
from strandline.metadata.configs.topic_configs import TOPIC_CONFIGS

OF_GROUPS = {
    "consumer.heartbeat.interval.ms": "How often a member of this consumer group sends a heartbeat.",
    "consumer.session.timeout.ms": "How long a member of this consumer group may be silent.",
}
OF_TOPICS = {
    "cleanup.policy": "What happens to old records: delete them, compact to the last record of every key, or both.",
    "compression.gzip.level": "The level of gzip if compression.type is gzip; -1 is the library's default.",
    "compression.lz4.level": "The level of lz4 if compression.type is lz4.",
    "compression.type": "How batches are stored: with one codec for all, uncompressed, or as the producer sent them.",
    "compression.zstd.level": "The level of zstd if compression.type is zstd.",
    "delete.retention.ms": "How long a tombstone of a compacted topic stays readable.",
    "file.delete.delay.ms": "How long the files of a deleted segment stay on disk.",
    "flush.messages": "After how many records a log is forced to disk, before the last of them is acknowledged.",
    "flush.ms": "After how long a record is forced to disk; checked every log.flush.scheduler.interval.ms.",
    "follower.replication.throttled.replicas": (
        "The replicas, as partition:broker, that followers copy within follower.replication.throttled.rate; * is all."
    ),
    "index.interval.bytes": "How many bytes of records are between two entries of the offset index.",
    "internal.segment.bytes": "For tests: a segment size below the limit of segment.bytes.",
    "leader.replication.throttled.replicas": (
        "The replicas, as partition:broker, that leaders serve within leader.replication.throttled.rate; * is all."
    ),
    "local.retention.bytes": "With tiered storage: how many bytes of a partition stay on local disks.",
    "local.retention.ms": "With tiered storage: how long records stay on local disks.",
    "max.compaction.lag.ms": "After how long a record must be compacted at the latest.",
    "max.message.bytes": "The largest record batch that is accepted, as it is stored.",
    "message.timestamp.after.max.ms": "How far a record's timestamp may be ahead of the broker's clock.",
    "message.timestamp.before.max.ms": "How far a record's timestamp may be behind the broker's clock.",
    "message.timestamp.type": "Which clock sets a record's timestamp: the producer's or the leader's.",
    "min.cleanable.dirty.ratio": "Which share of a log must be uncompacted before the log is compacted.",
    "min.compaction.lag.ms": "How long a record stays uncompacted at least.",
    "min.insync.replicas": (
        "How many replicas must be in sync before acks=all is accepted and the high watermark moves. "
        "The effective value is never more than the number of the partition's replicas."
    ),
    "preallocate": "Whether a new segment's file gets its full size at once.",
    "remote.storage.enable": "Whether segments are moved to tiered storage.",
    "retention.bytes": "How large a partition may become before its oldest segments are deleted; -1 is no limit.",
    "retention.ms": "How old a record may become before its segment is deleted; -1 is no limit.",
    "segment.bytes": "The size at which a new segment begins.",
    "segment.index.bytes": "The largest size of a segment's offset index.",
    "segment.jitter.ms": "The most by which the time of a new segment is brought forward at random.",
    "segment.ms": "The age at which a new segment begins although the last one is not full.",
    "unclean.leader.election.enable": (
        "Deprecated, use unclean.recovery.strategy: true means Aggressive, false Balanced. If both are set on one "
        "level, the strategy counts."
    ),
    "unclean.recovery.strategy": (
        "How a partition without an eligible leader gets one, which may lose committed records: None (an operator "
        "must decide), Balanced (wait for all replicas that may have the longest log; if recoveries are not managed, "
        "for the last leader), or Aggressive (choose among the replicas that answer soon; if recoveries are not "
        "managed, any replica) (KIP-966)."
    ),
}

OF_CLIENT_METRICS = {
    "metrics": "Which metrics the clients push, as prefixes of names; * is all, and an empty list is none.",
    "interval.ms": "How often the clients push, in milliseconds.",
    "match": (
        "Which clients push, as name=pattern for client_instance_id, client_id, client_software_name, "
        "client_software_version, client_source_address or client_source_port. A client must match all of them; "
        "without any, every client matches."
    ),
}

PEM_IS_DEFAULT = "Kafka's default is JKS, which only Java reads."
OF_NODES = {
    "process.roles": "What the node is: broker, controller, or both.",
    "node.id": "The node's number, unique in the cluster.",
    "broker.rack": "The broker's rack; replicas are spread over racks, and consumers may read from their own rack.",
    "listeners": "The addresses that the node listens on, as NAME://host:port.",
    "advertised.listeners": "The addresses that clients and brokers get; those of listeners if not set.",
    "controller.listener.names": "Which listeners are the controller's.",
    "inter.broker.listener.name": "Which listener other brokers use.",
    "cluster.secret.file": "The file with the secret by which nodes of a cluster know one another; cluster-secret in"
    " metadata.log.dir if not set. Only its owner may read it.",
    "cluster.secret.required": "Whether only nodes that prove the cluster's secret may act as nodes. If false,"
    " anybody who can connect can do it.",
    "listener.security.protocol.map": (
        "The security protocol of each listener, as NAME:PROTOCOL: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. If it is"
        " not set, a listener has the protocol that it is named for, and controllers' listeners PLAINTEXT, unless a"
        " listener is named for SSL or SASL."
    ),
    "security.inter.broker.protocol": (
        "The protocol that other brokers use: the listener of this name, if inter.broker.listener.name is not set."
    ),
    "ssl.keystore.type": f"The format of ssl.keystore.location: PEM or PKCS12. {PEM_IS_DEFAULT}",
    "ssl.keystore.location": (
        "The file with the private key and the certificate chain, for clients and for connections to other nodes. A"
        " changed file is used for new connections within seconds."
    ),
    "ssl.keystore.password": "The password of a PKCS12 key store.",
    "ssl.key.password": "The password of an encrypted private key in PEM.",
    "ssl.keystore.certificate.chain": "The certificate chain itself, in PEM; the node's own certificate is the first.",
    "ssl.keystore.key": "The private key itself, in PEM.",
    "ssl.truststore.type": f"The format of ssl.truststore.location: PEM or PKCS12. {PEM_IS_DEFAULT}",
    "ssl.truststore.location": (
        "The file with the certificates that are trusted: of clients, and of other nodes. Without one, nodes trust the"
        " authorities of the system."
    ),
    "ssl.truststore.password": "The password of a PKCS12 trust store.",
    "ssl.truststore.certificates": "The trusted certificates themselves, in PEM.",
    "ssl.client.auth": (
        "Whether clients must have a certificate: required, requested (one that is sent must be valid), or none. Of"
        " SASL_SSL listeners only their own setting counts (KIP-684)."
    ),
    "ssl.enabled.protocols": "The versions of TLS: TLSv1.2, TLSv1.3, or both.",
    "ssl.protocol": "The version of TLS.",
    "ssl.cipher.suites": "The cipher suites, by Java's or OpenSSL's names; OpenSSL's defaults if not set.",
    "ssl.endpoint.identification.algorithm": (
        "https: another node's certificate must be valid for its host name. Empty: any trusted certificate will do."
    ),
    "ssl.principal.mapping.rules": (
        "How the subject of a client's certificate becomes a user's name: RULE:pattern/replacement/[LU], or DEFAULT for"
        " the whole subject; the first rule that matches counts (KIP-371)."
    ),
    "sasl.enabled.mechanisms": (
        "The mechanisms by which clients of SASL listeners may authenticate: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512,"
        " OAUTHBEARER."
    ),
    "sasl.jaas.config": (
        "Only for one mechanism of a listener, listener.name.NAME.plain.sasl.jaas.config: PlainLoginModule and the"
        ' users of PLAIN, as user_NAME="PASSWORD".'
    ),
    "sasl.mechanism.inter.broker.protocol": (
        "No effect: nodes prove the cluster's secret to one another, on listeners of every protocol."
    ),
    "sasl.mechanism.controller.protocol": (
        "No effect: nodes prove the cluster's secret to one another, on listeners of every protocol."
    ),
    "sasl.server.max.receive.size": "The largest request of a client that has not authenticated yet.",
    "sasl.server.callback.handler.class": (
        "Kafka's OAuthBearerValidatorCallbackHandler, which is what OAUTHBEARER does here anyway."
    ),
    "connections.max.reauth.ms": (
        "After how long a client of a SASL listener has to authenticate again on its connection; 0 or less is never"
        " (KIP-368). A listener, and a mechanism of it, may have its own."
    ),
    "connection.failed.authentication.delay.ms": (
        "How long a client waits for the answer if its authentication fails; then its connection is closed (KIP-306)."
    ),
    "sasl.oauthbearer.jwks.endpoint.url": (
        "Where the keys are that sign tokens of OAUTHBEARER: the file:, https: or http: URL of a JSON Web Key Set."
    ),
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "How often the key set is read again.",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": (
        "How long to wait before a key set that could not be read is read again; twice as long after each failure."
    ),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "The most of that.",
    "sasl.oauthbearer.expected.audience": "For whom a token must be, one of these; any token if not set.",
    "sasl.oauthbearer.expected.issuer": "By whom a token must be issued; by anybody who has a key if not set.",
    "sasl.oauthbearer.scope.claim.name": "The claim of a token with its scopes; they have no effect.",
    "sasl.oauthbearer.sub.claim.name": "The claim of a token with the user's name.",
    "sasl.oauthbearer.clock.skew.seconds": "By how much the clock of a token's issuer may differ.",
    "controller.quorum.voters": "The voters of the metadata quorum, as id@host:port.",
    "controller.quorum.election.timeout.ms": "How long a candidate waits for votes before it begins another election.",
    "controller.quorum.fetch.timeout.ms": "How long a voter waits for its leader before it begins an election.",
    "controller.quorum.election.backoff.max.ms": "The longest pause after a lost election.",
    "controller.quorum.append.linger.ms": "How long the leader collects records before it writes them.",
    "controller.quorum.request.timeout.ms": "How long a request between voters may take.",
    "controller.quorum.retry.backoff.ms": "The pause before a failed request to a voter is sent again.",
    "controller.quorum.fetch.max.bytes": "The most bytes in the answer to one Fetch of the metadata log.",
    "controller.quorum.fetch.snapshot.max.bytes": "The most bytes in the answer to one FetchSnapshot.",
    "initial.broker.registration.timeout.ms": "How long a starting broker tries to register before it gives up.",
    "broker.heartbeat.interval.ms": "How often a broker sends a heartbeat to the controller.",
    "broker.session.timeout.ms": "After how long without a heartbeat a broker is fenced.",
    "controlled.shutdown.enable": "Whether a broker moves its leaderships to other brokers before it stops.",
    "request.timeout.ms": "How long a client's request that is forwarded to the controller may take.",
    "controller.socket.timeout.ms": "How long a broker's own requests about replicas to the controller may take.",
    "authorizer.class.name": (
        "Kafka's name of the authorizer, so that ACLs decide who may do what; empty: everybody may do everything. All"
        " nodes need the same."
    ),
    "super.users": "Principals to whom everything is permitted, as User:a;User:b.",
    "allow.everyone.if.no.acl.found": (
        "Whether everybody may do everything with a resource that no ACL is about. Otherwise only super users may."
    ),
    "log.dir": "The directory of logs, if log.dirs is not set.",
    "log.dirs": "The directories of logs.",
    "cordoned.log.dirs": "The log directories that get no new replicas; * is all of them (KIP-1066).",
    "replica.alter.log.dirs.io.max.bytes.per.second": "How many bytes a second are copied between log directories, for"
    " all replicas that move.",
    "alter.log.dirs.replication.quota.window.num": "Over how many windows the rate of moves of replicas between"
    " log directories is measured.",
    "alter.log.dirs.replication.quota.window.size.seconds": "How long such a window is.",
    "log.dir.failure.timeout.ms": "How long a broker may fail to report an offline log directory to the controller,"
    " before it stops.",
    "metadata.log.dir": "The directory of the metadata log; the first of the log directories if not set.",
    "metadata.log.segment.bytes": "The size at which a new segment of the metadata log begins.",
    "metadata.log.segment.ms": "The age at which a new segment of the metadata log begins.",
    "metadata.log.max.record.bytes.between.snapshots": "After how many bytes of metadata a snapshot is written.",
    "metadata.log.max.snapshot.interval.ms": "After how long a snapshot of the metadata is written at the latest.",
    "metadata.max.retention.bytes": "How large the metadata log and its snapshots together may become.",
    "metadata.max.retention.ms": "How old metadata may become before it is deleted after a snapshot.",
    "metadata.max.idle.interval.ms": "How often an idle controller writes a no-op record.",
    "num.partitions": "How many partitions a new topic has if the request does not say how many.",
    "default.replication.factor": "How many replicas a new topic has if the request does not say how many.",
    "auto.create.topics.enable": "Whether a topic is created when a client first names it.",
    "delete.topic.enable": "Whether topics can be deleted.",
    "auto.leader.rebalance.enable": "Whether leadership returns to the preferred replica by itself.",
    "leader.imbalance.check.interval.seconds": (
        "How often the controller gives leadership back to all preferred replicas that may lead, however few."
    ),
    "unclean.leader.election.interval.ms": (
        "How often the controller looks for partitions without a leader that may have an unclean election."
    ),
    "eligible.leader.replicas.enabled": (
        "Whether replicas of a new cluster stay eligible when they leave the ISR below min ISR (KIP-966). It sets the"
        " feature eligible.leader.replicas.version, which counts from then on. Read when a node is formatted."
    ),
    "unclean.recovery.manager.enabled": (
        "Whether replicas are asked for their logs before an unclean election, and the one with the most data leads "
        "(KIP-966). The active controller's file counts."
    ),
    "unclean.recovery.timeout.ms": (
        "How long an unclean recovery waits for the answers of replicas: Aggressive for all, Balanced for those that "
        "were not eligible last (KIP-966)."
    ),
    "producer.id.expiration.ms": "How long a log remembers an idempotent producer that writes nothing.",
    "log.retention.check.interval.ms": "How often retention checks logs for segments to delete.",
    "log.flush.scheduler.interval.ms": "How often logs are checked for records whose flush.ms is over; also used as"
    " log.flush.interval.ms if that is not set.",
    "log.flush.offset.checkpoint.interval.ms": "How often logs are flushed and their recovery points written.",
    "log.flush.start.offset.checkpoint.interval.ms": "How often the start offsets of logs are written.",
    "log.scrub.max.bytes.per.second": "How many bytes of logs a second are read to find and repair damage on the disk; "
    "0: only damage that reads find is repaired.",
    "log.scrub.interval.ms": "How long the scrubber rests after it has read all logs.",
    "log.cleaner.enable": "Whether compacted topics are compacted.",
    "log.cleaner.backoff.ms": "How long the cleaner sleeps when there is nothing to clean.",
    "log.cleaner.dedupe.buffer.size": "How much memory the cleaner's map of keys may need; a key counts as 200 bytes.",
    "log.cleaner.io.max.bytes.per.second": "How many bytes the cleaner may work on in a second.",
    "replica.lag.time.max.ms": "How long a follower may lag before it leaves the ISR.",
    "replica.socket.timeout.ms": "How long a follower's Fetch may take in all.",
    "replica.fetch.max.bytes": "How many bytes of one partition a follower requests at a time.",
    "replica.fetch.wait.max.ms": "How long a leader may hold a follower's Fetch when there is nothing new.",
    "replica.fetch.backoff.ms": "The pause of a follower after an error.",
    "replica.fetch.min.bytes": "How many bytes end the wait of a follower's Fetch.",
    "replica.fetch.response.max.bytes": "How many bytes of all partitions a follower requests at a time.",
    "replica.high.watermark.checkpoint.interval.ms": "How often high watermarks are written to disk.",
    "replica.selector.class": "The class that chooses the replica from which a consumer reads (KIP-392).",
    "leader.replication.throttled.rate": "Bytes a second that a leader sends to throttled replicas (KIP-73).",
    "follower.replication.throttled.rate": "Bytes a second that throttled replicas copy as followers (KIP-73).",
    "replication.quota.window.num": "Over how many windows the rate of throttled replication is measured.",
    "replication.quota.window.size.seconds": "How long such a window is.",
    "telemetry.max.bytes": "The largest push of a client's metrics, as it is sent (KIP-714).",
    "quota.window.num": "Over how many windows the rates of clients with quotas are measured.",
    "quota.window.size.seconds": "How long such a window is.",
    "controller.quota.window.num": "For how many windows a client may save up partitions to create or delete.",
    "controller.quota.window.size.seconds": "How long such a window is.",
    "fetch.max.bytes": "The most bytes in the answer to one Fetch, whatever it requests.",
    "max.incremental.fetch.session.cache.slots": "How many fetch sessions a broker keeps.",
    "max.request.partition.size.limit": "The most partitions in one answer of DescribeTopicPartitions.",
    "group.min.session.timeout.ms": "The shortest session timeout that a member of a group may have.",
    "group.max.session.timeout.ms": "The longest session timeout that a member of a group may have.",
    "group.initial.rebalance.delay.ms": "How long a new group waits for more members.",
    "group.max.size": "How many members a group may have.",
    "group.coordinator.rebalance.protocols": "The protocols that groups may use: classic, and consumer (KIP-848).",
    "group.consumer.session.timeout.ms": "How long a member of a consumer group may be silent.",
    "group.consumer.min.session.timeout.ms": "The shortest session timeout that a consumer group may have.",
    "group.consumer.max.session.timeout.ms": "The longest session timeout that a consumer group may have.",
    "group.consumer.heartbeat.interval.ms": "How often a member of a consumer group sends a heartbeat.",
    "group.consumer.min.heartbeat.interval.ms": "The shortest heartbeat interval that a consumer group may have.",
    "group.consumer.max.heartbeat.interval.ms": "The longest heartbeat interval that a consumer group may have.",
    "group.consumer.max.size": "How many members a consumer group may have.",
    "group.consumer.assignors": "The assignors that members of consumer groups may choose. The first is the default.",
    "group.consumer.migration.policy": "Which groups with members may change their protocol: to the consumer protocol "
    "(upgrade), to the classic one (downgrade), both, or neither.",
    "offset.metadata.max.bytes": "The longest text that may be committed with an offset.",
    "offsets.commit.timeout.ms": "How long a commit of offsets waits for the in-sync replicas.",
    "offsets.retention.minutes": "How long the offsets of a group without members are kept.",
    "offsets.retention.check.interval.ms": "How often the coordinator looks for expired offsets.",
    "offsets.topic.num.partitions": "How many partitions the offsets topic is created with.",
    "offsets.topic.replication.factor": "How many replicas the offsets topic is created with.",
    "offsets.topic.segment.bytes": "The segment size of the offsets topic.",
    "transactional.id.expiration.ms": "How long the coordinator keeps a transactional id that is not used.",
    "transaction.max.timeout.ms": "The longest transaction timeout that a producer may ask for.",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "How often the coordinator looks for transactions whose timeout is over, and aborts them."
    ),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "How often the coordinator looks for expired transactional ids."
    ),
    "transaction.two.phase.commit.enable": (
        "Whether a producer may have transactions without a timeout, which another system commits (KIP-939)."
    ),
    "transaction.partition.verification.enable": (
        "Whether a leader asks the coordinator before the first append of a transaction (KIP-890)."
    ),
    "add.partitions.to.txn.retry.backoff.ms": (
        "The pause before a leader asks the coordinator again to add a partition to a transaction (KIP-890)."
    ),
    "add.partitions.to.txn.retry.backoff.max.ms": (
        "How long a leader asks again before the producer gets an error to retry (KIP-890)."
    ),
    "transaction.state.log.num.partitions": "How many partitions the transaction topic is created with.",
    "transaction.state.log.replication.factor": "How many replicas the transaction topic is created with.",
    "transaction.state.log.min.isr": "The min.insync.replicas that the transaction topic is created with.",
    "transaction.state.log.segment.bytes": "The segment size of the transaction topic.",
    "socket.send.buffer.bytes": "The send buffer of a client's connection; -1 is the system's default.",
    "socket.receive.buffer.bytes": "The receive buffer of a client's connection; -1 is the system's default.",
    "socket.request.max.bytes": "The largest request that is read.",
    "socket.listen.backlog.size": "How many connections may wait to be accepted.",
    "strandline.metrics.listener": "host:port at which metrics are served as Prometheus text; none if not set.",
    "connections.max.idle.ms": "After how long an idle connection is closed.",
    "max.connections": (
        "How many connections a node has at most; those of the other nodes' listeners are always let in (KIP-402)."
        " listener.name.NAME.max.connections is the number of one listener."
    ),
    "max.connections.per.ip": "How many connections a client's address has at most; more are closed at once.",
    "max.connections.per.ip.overrides": "Other numbers for single addresses, as address:number, separated by commas.",
    "max.connection.creation.rate": (
        "How many connections a node accepts in a second; more wait (KIP-612)."
        " listener.name.NAME.max.connection.creation.rate is the rate of one listener."
    ),
    "queued.max.request.bytes": (
        "How many bytes of requests may be read and not answered; then nothing more is read. -1 is no limit."
    ),
    "strandline.queued.response.max.bytes": (
        "How many bytes of answers may wait for clients that read slowly, over all connections. The less is free, the"
        " smaller are the answers to Fetch; clients that read nothing are disconnected."
    ),
    "strandline.connection.setup.timeout.ms": (
        "How long a new connection may take until its first request; -1 is no limit but connections.max.idle.ms."
    ),
}

NO_TIERS = "there is no tiered storage"
BY_SNAPSHOTS = "the metadata log before the snapshots is deleted, whatever these limits are"
# Keys that are accepted, so that Kafka's files and tools work, and that change nothing.
WITHOUT_EFFECT = {
    "file.delete.delay.ms": "files are removed at once: a read in progress holds memory, not a path",
    "ssl.protocol": "ssl.enabled.protocols decides",
    "preallocate": "files grow as they are written",
    "local.retention.bytes": NO_TIERS,
    "local.retention.ms": NO_TIERS,
    "remote.storage.enable": NO_TIERS,
    "controller.quorum.append.linger.ms": "records are written at once; later ones wait for the next fsync",
    "controller.quorum.retry.backoff.ms": "the quorum paces its retries by the fetch timeout",
    "metadata.max.retention.bytes": BY_SNAPSHOTS,
    "metadata.max.retention.ms": BY_SNAPSHOTS,
    "metadata.max.idle.interval.ms": "fetches show that an idle controller is alive, so no records are needed",
    "add.partitions.to.txn.retry.backoff.max.ms": "a leader asks again until the request of the producer times out",
}


def documentation(key: ConfigKey) -> str:
    tables = (OF_TOPICS, OF_NODES, OF_GROUPS, OF_CLIENT_METRICS)
    own = next((texts[key.name] for texts in tables if key.name in texts), None)
    text, reason = own or default_of(key.name), why_without_effect(key)
    return text if reason is None else f"{text} Accepted without effect here: {reason}."


def default_of(name: str) -> str:
    """What a broker's key means that is nothing but the default of a topic's."""
    row = next((row for row in TOPIC_CONFIGS.values() if any(name == synonym for synonym, _ in row.synonyms)), None)
    assert row is not None, f"{name} has no documentation"
    names = [synonym for synonym, _ in row.synonyms]
    if name == names[0]:
        return f"The default of the topics' {row.name}. {OF_TOPICS[row.name]}"
    return f"Used for {names[0]}, in its own unit, if that is not set."


def why_without_effect(key: ConfigKey) -> str | None:
    if key.name in WITHOUT_EFFECT:
        return WITHOUT_EFFECT[key.name]
    for row in TOPIC_CONFIGS.values():
        if any(key.name == synonym for synonym, _ in row.synonyms):
            return WITHOUT_EFFECT.get(row.name)
    return None
