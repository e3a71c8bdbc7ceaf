"""What the controller's decisions rest on, and what a decision is.

A `Basis` is the leading image and the configuration at one moment; every `plan_*` function takes one and returns a
`Plan`. Plans mutate nothing: the controller writes a plan's records and applies them to the leading image.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import field

from strandline.base.errors import ErrorCode
from strandline.base.ids import BrokerEpoch, NodeId, TopicIdPartition, Uuid
from strandline.base.ports import Rng
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.controller.partition import Election, LastResort, Rules, Wish, plan_change
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.features import ELR_FEATURE, initial_levels
from strandline.metadata.image import (
    UNASSIGNED_DIRECTORY,
    Broker,
    Image,
    Partition,
    Topic,
    directory_of,
    effective_min_isr,
)
from strandline.metadata.losses import is_written, withdrawal
from strandline.metadata.records import (
    BrokerRegistrationChangeRecord,
    LossEvent,
    PartitionChangeRecord,
    UserScramCredentialRecord,
)
from strandline.metadata.strategy import Strategy, strategy_of
from strandline.wire.messages.brokers.broker_registration import LostTopic

NOTHING: Mapping[TopicIdPartition, LossEvent] = {}

# What a strategy means while no recovery is managed (KIP-966, Delivery plan).
LAST_RESORTS = {
    Strategy.NONE: LastResort.NOBODY,
    Strategy.BALANCED: LastResort.LAST_KNOWN_LEADER,
    Strategy.AGGRESSIVE: LastResort.ANYBODY,
}


class ControllerConfig(Value, frozen=True):
    cluster_id: str = ""  # empty: a registration is not asked for which cluster it is
    session_timeout_ms: int = 9000  # broker.session.timeout.ms
    default_num_partitions: int = 1  # num.partitions
    default_replication_factor: int = 1  # default.replication.factor
    max_partitions_per_request: int = 10_000
    is_topic_deletion_enabled: bool = True  # delete.topic.enable
    is_leader_rebalance_enabled: bool = True  # auto.leader.rebalance.enable
    leader_imbalance_check_ms: int = 300_000  # leader.imbalance.check.interval.seconds
    unclean_election_check_ms: int = 300_000  # unclean.leader.election.interval.ms
    elections_per_check: int = 1000  # the next ones come soon after
    changes_per_step: int = 400  # partitions that a broker leaves in one step, or that one batch changes
    is_recovery_managed: bool = False  # unclean.recovery.manager.enabled
    recovery_timeout_ms: int = 300_000  # unclean.recovery.timeout.ms
    max_waiting: int = 10_000  # answers that wait for commits; a log that stalls so long has lost its leader
    probe_timeout_ms: int = 1000
    probe_again_ms: int = 50  # between the first refused connection and the one that proves a broker dead
    initial_features: dict[str, int] = field(default_factory=lambda: initial_levels({}))  # of a new cluster
    initial_users: tuple[UserScramCredentialRecord, ...] = ()  # the same

    def __post_init__(self) -> None:
        assert self.default_num_partitions > 0 and self.default_replication_factor > 0
        assert self.session_timeout_ms > 0 and self.recovery_timeout_ms >= 0
        assert self.max_partitions_per_request > 0 and self.max_waiting > 0
        assert self.leader_imbalance_check_ms > 0 and self.unclean_election_check_ms > 0, (
            "or a node would do nothing else"
        )
        assert self.elections_per_check > 0 and self.changes_per_step > 0, "each look gets on"
        assert self.probe_timeout_ms > 0 and self.probe_again_ms >= 0


class Departure(Value, frozen=True):
    """A broker leaves ISRs and leaderships, some in each step. Until the last of them the image has it as before, and
    nobody elects it, or takes it into an ISR. A broker that is not active leads nothing, and is in sync nowhere: so
    `record`, by which it is active no longer, is written with the last changes (KIP-841)."""

    epoch: BrokerEpoch
    record: BrokerRegistrationChangeRecord
    left: tuple[TopicIdPartition, ...]  # where it may be in sync still


class Plan(Value, frozen=True):
    """What to write, and what to answer once it is committed. `departure`: what is to follow in the next steps."""

    records: tuple[Any, ...]
    response: Any
    departure: Departure | None = None


class Refusal(Value, frozen=True):
    """Why one of the things that a request asks for is not done."""

    error: ErrorCode
    message: str

    def __post_init__(self) -> None:
        assert self.error is not ErrorCode.NONE
        assert self.message, "who is refused hears why"


class Basis(Value, frozen=True):
    image: Image
    config: ControllerConfig
    static: Mapping[str, ConfigValue]  # the node's own configuration
    rng: Rng
    next_offset: int  # of the metadata log: where the first record of a plan will stand
    now: Instant
    departing: Mapping[NodeId, Departure] = field(default_factory=dict)

    def why_stale(self, node: int, epoch: int) -> ErrorCode | None:
        """Why may a request of this broker not be served? None means it is the registered incarnation."""
        broker = self.image.brokers.get(NodeId(node))
        if broker is None or broker.epoch != BrokerEpoch(epoch):  # guard: zombie-broker-served
            return ErrorCode.STALE_BROKER_EPOCH
        return None

    def rules(self, topic: Topic, joining: NodeId | None = None, leaving: NodeId | None = None) -> Rules:
        """The rules for a topic's partitions, as if `joining` were active already and `leaving` no longer."""
        assert joining is None or joining != leaving

        def is_acceptable(node: NodeId, directory: Uuid) -> bool:
            broker = self.image.brokers.get(node)
            if broker is None or node == leaving or not (node == joining or broker.is_active):
                return False
            if node in self.departing:
                return False
            return broker.is_online(directory)  # guard: elected-in-a-lost-directory

        return Rules(
            is_acceptable=is_acceptable,
            last_resort=LastResort.NOBODY if self.config.is_recovery_managed else LAST_RESORTS[self.strategy(topic)],
            min_isr=self.image.min_isr(topic),
            is_elr_enabled=self.image.features.get(ELR_FEATURE, 0) > 0,
            now=self.now,
        )

    def strategy(self, topic: Topic) -> Strategy:
        return strategy_of(self.image, topic.name, self.static)

    def departure(
        self,
        node: NodeId,
        lost_tail: bool,
        directories: Collection[Uuid] | None = None,
        withdrawn: Mapping[TopicIdPartition, LossEvent] = NOTHING,
        within: Sequence[TopicIdPartition] | None = None,
    ) -> list[PartitionChangeRecord]:
        """A broker leaves every ISR and every leadership; with a lost tail it is no longer eligible either. With
        `directories`, only its replicas there. Those that are withdrawn leave in any case, with a lost tail. `within`:
        only these partitions."""
        assert node >= 0
        changes = []
        rules: dict[Uuid, Rules] = {}
        for at in self.eligible_in(node, withdrawn) if within is None else within:
            topic, partition = self.at(at)
            events = (withdrawn[at],) if at in withdrawn else ()
            if directories is not None and not events and directory_of(partition, node) not in directories:
                continue
            if at.topic_id not in rules:
                rules[at.topic_id] = self.rules(topic, leaving=node)
            lost = (node,) if lost_tail or events else ()  # guard: torn-replica-stays-eligible
            wish = Wish(isr=tuple(n for n in partition.isr if n != node), lost_tail=lost, withdrawn=events)
            changes.append(plan_change(at, partition, wish, rules[at.topic_id]))
        return [change for change in changes if change is not None]

    def eligible_in(
        self, node: NodeId, withdrawn: Mapping[TopicIdPartition, LossEvent] = NOTHING
    ) -> list[TopicIdPartition]:
        return sorted({*self.image.eligible.get(node, {}), *withdrawn})

    def is_departing(self, broker: Broker) -> bool:
        departure = self.departing.get(broker.node_id)
        return departure is not None and departure.epoch == broker.epoch

    def withdrawn(
        self, node: NodeId, said: Collection[LostTopic], *, registers: bool = False
    ) -> dict[TopicIdPartition, LossEvent]:
        """What a broker says that its replicas lost, as far as it is news. One that is neither in sync nor eligible may
        be proposed already, unless its broker begins a new broker epoch."""
        assert node >= 0
        found: dict[TopicIdPartition, LossEvent] = {}
        concerned = (self.image.eligible if registers else self.image.hosted).get(node, {})
        for topic in said:
            for row in topic.partitions:
                at = TopicIdPartition(topic.topic_id, row.partition_index)
                if at not in concerned:
                    continue
                partition = self.at(at)[1]
                event = withdrawal(node, row.start, row.end, row.cause, row.time_ms, partition.leader_epoch)
                if not is_written(event, partition.withdrawals):
                    found[at] = event
        return found

    def withdrawals(self, node: NodeId, withdrawn: Mapping[TopicIdPartition, LossEvent]) -> list[PartitionChangeRecord]:
        """Replicas of a broker that lives on lost records: they leave ISR and ELR. Where nobody else may lead, it may
        be elected again in the same change, as the topic's last resort; without ELR, as the last member of the ISR."""
        changes = []
        for at, event in sorted(withdrawn.items()):
            topic, partition = self.at(at)
            isr = tuple(n for n in partition.isr if n != node)
            wish = Wish(isr=isr, lost_tail=(node,), withdrawn=(event,))
            changes.append(plan_change(at, partition, wish, self.rules(topic)))
        return [change for change in changes if change is not None]

    def elections_after_unfencing(self, node: NodeId) -> list[PartitionChangeRecord]:
        """A broker becomes active: partitions without a leader may now have one."""
        assert node in self.image.brokers
        changes = []
        for at in sorted(self.image.hosted.get(node, {})):
            topic, partition = self.at(at)
            if partition.leader < 0:
                changes.append(plan_change(at, partition, Wish(), self.rules(topic, joining=node)))
        return [change for change in changes if change is not None]

    def elections(self, limit: int, election: Election) -> list[PartitionChangeRecord]:
        """At most `limit` changes where a partition has no leader, or not the preferred one, and could have it."""
        assert limit > 0
        changes: list[PartitionChangeRecord] = []
        for topic in self.image.topics.values():
            for index, partition in topic.partitions.items():
                if partition.leader == partition.replicas[0]:
                    continue
                if partition.leader >= 0 and election is Election.KEEP:
                    continue
                at = TopicIdPartition(topic.topic_id, index)
                change = plan_change(at, partition, Wish(election=election), self.rules(topic))
                if change is not None:
                    changes.append(change)
                if len(changes) == limit:
                    return changes
        return changes

    def renewals(self, before: Image) -> list[PartitionChangeRecord]:
        """A partition epoch for each partition whose effective min ISR is not what it was (L7).

        A leader hears what became of its own proposal by an answer, which may overtake the metadata log. It would put a
        new ISR beside an old min ISR, and commit without those whom the controller counts as eligible by the new one.
        Of an epoch that it did not begin itself it hears by the log, and of what the log said before.
        """
        changes = []
        for topic in self.image.topics.values():
            known, rules = before.topics[topic.topic_id], self.rules(topic)
            was = before.min_isr(known)
            if rules.min_isr == was:
                continue
            for index, partition in topic.partitions.items():
                counted, counts = (
                    effective_min_isr(min_isr, partition.replicas, partition.adding_replicas)
                    for min_isr in (was, rules.min_isr)
                )
                if counted != counts and partition is known.partitions[index]:
                    at = TopicIdPartition(topic.topic_id, index)
                    # guard: eligible-by-another-min-isr
                    changes.append(plan_change(at, partition, Wish(renews_epoch=True), rules))
        return [change for change in changes if change is not None]

    def at(self, at: TopicIdPartition) -> tuple[Topic, Partition]:
        topic = self.image.topics[at.topic_id]
        assert topic.topic_id == at.topic_id
        return topic, topic.partitions[at.partition]

    def directories(self, replicas: tuple[NodeId, ...]) -> tuple[Uuid, ...]:
        """Where new replicas lie: a broker with one log directory has no choice."""
        assert len(set(replicas)) == len(replicas)
        return tuple(
            log_dirs[0] if len(log_dirs := self.image.brokers[node].log_dirs) == 1 else UNASSIGNED_DIRECTORY
            for node in replicas
        )
