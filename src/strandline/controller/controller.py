"""The active controller: the single writer of the cluster's metadata.

A ledger. `plan_*` functions decide on the leading image and mutate nothing; what they decide is written to the metadata
log and applied to the leading image by `Image.apply`, the only mutator. The leading image runs ahead of what is
committed, so an answer waits until everything that it rests on is: the records of its own request, and those before it.
If leadership is lost first, it is NOT_CONTROLLER, and the requester asks the next controller.

Invariants (executed by `check`):
  - no answer leaves before the records it rests on are committed; answers wait in the order of their offsets;
  - every unfenced broker has a session, and every session a registered broker;
  - a leader is active; an ISR of several members has only active ones;
  - nothing waits, and no session runs, while another node is the controller.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from strandline.base.effects import (
    Answered,
    Disconnected,
    Effect,
    Event,
    Failed,
    Failure,
    Probed,
    Received,
    Reply,
    ReplyTo,
    Report,
)
from strandline.base.errors import ErrorCode
from strandline.base.ids import BrokerEpoch, NodeId
from strandline.base.ports import Rng
from strandline.base.time import NEVER, Instant, after
from strandline.base.value import Value
from strandline.controller.acknowledging import plan_acknowledgement
from strandline.controller.basis import Basis, ControllerConfig, Departure, Plan
from strandline.controller.brokers.brokers import (
    plan_fencing,
    plan_heartbeat,
    plan_registration,
    plan_unregistration,
    takes_place_of,
)
from strandline.controller.brokers.departing import Departures, go_on
from strandline.controller.brokers.directories import plan_assign_replicas
from strandline.controller.brokers.heartbeats import DEFAULT_LISTENER, Heartbeats
from strandline.controller.configs import MIN_ISR_KEY, concern, plan_alter_configs, plan_replace_configs
from strandline.controller.counts import Counts
from strandline.controller.features import plan_beginning, plan_update_features
from strandline.controller.partition import Election
from strandline.controller.partitions.elections import plan_elections
from strandline.controller.partitions.isr import plan_alter_partition
from strandline.controller.partitions.manual import Manual, is_manual
from strandline.controller.partitions.min_isr import plan_min_isr
from strandline.controller.partitions.reassignments import completions, plan_list, plan_reassignments
from strandline.controller.partitions.recovery import Recoveries
from strandline.controller.producer_ids import plan_allocation
from strandline.controller.refusals import REFUSALS, refusal
from strandline.controller.reports import reports_of
from strandline.controller.security.acls import plan_create_acls, plan_delete_acls
from strandline.controller.security.quotas import plan_alter_quotas
from strandline.controller.security.scram import plan_alter_credentials
from strandline.controller.tokens import InquirySent, ProbeSent
from strandline.controller.topics.topics import plan_create_partitions, plan_create_topics, plan_delete_topics
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.fitting import why_unfit
from strandline.metadata.framing import fits_in_batch
from strandline.metadata.image import Image
from strandline.metadata.records import AbortTransactionRecord, PartitionChangeRecord
from strandline.metadata.strategy import STRATEGY_KEY, STRATEGY_KEYS, UNCLEAN_KEY, Strategy, strategy_in
from strandline.wire.messages.brokers.allocate_producer_ids import AllocateProducerIdsRequest
from strandline.wire.messages.brokers.alter_partition import AlterPartitionRequest
from strandline.wire.messages.brokers.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest
from strandline.wire.messages.cluster.alter_configs import AlterConfigsRequest
from strandline.wire.messages.cluster.incremental_alter_configs import IncrementalAlterConfigsRequest
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest
from strandline.wire.messages.cluster.update_features import UpdateFeaturesRequest
from strandline.wire.messages.own.acknowledge_losses import AcknowledgeLossesRequest
from strandline.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest
from strandline.wire.messages.security.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from strandline.wire.messages.security.create_acls import CreateAclsRequest
from strandline.wire.messages.security.delete_acls import DeleteAclsRequest
from strandline.wire.messages.topics.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from strandline.wire.messages.topics.create_partitions import CreatePartitionsRequest
from strandline.wire.messages.topics.create_topics import CreateTopicsRequest
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest
from strandline.wire.messages.topics.elect_leaders import ElectLeadersRequest
from strandline.wire.messages.topics.list_partition_reassignments import ListPartitionReassignmentsRequest

NEXT_ELECTIONS_MS = 10  # the rest of many elections comes soon after, so that requests are served in between


class MetadataWriter(Protocol):
    """The metadata log, as its leader sees it."""

    @property
    def next_offset(self) -> int:
        """The offset at which the next record will stand."""
        ...

    def append(self, records: list[Any], now: Instant) -> int:
        """Write one atomic batch of consecutive offsets; return the offset of the last record. It is not committed."""
        ...


class Waiting(Value, frozen=True):
    """An answer, and the offset of the last record that it rests on. The request says how to take it back."""

    offset: int
    to: ReplyTo
    request: Any
    response: Any


class Controller:
    def __init__(
        self, me: NodeId, config: ControllerConfig, static: Mapping[str, ConfigValue], rng: Rng, writer: MetadataWriter
    ) -> None:
        self.me = me
        self.config = config
        self.static = static
        self.rng = rng
        self.writer = writer
        self.image = Image()
        self.epoch = -1
        self.is_active = False
        self.counts = Counts()
        self.reset()

    def reset(self) -> None:
        listener = self.static.get("inter.broker.listener.name") or DEFAULT_LISTENER
        self.heartbeats = Heartbeats(self.config, str(listener))
        self.recoveries = Recoveries(str(listener))
        self.manual = Manual(self.recoveries)
        self.departures = Departures()  # of brokers that are about to be fenced, or to shut down
        self.waiting: deque[Waiting] = deque()
        self.last_written = -1
        self.high_watermark = 0
        self.next_balance = NEVER  # preferred replicas are elected
        self.next_unclean = NEVER  # partitions without a leader are looked at

    # --- the role

    def activate(self, image: Image, epoch: int, now: Instant) -> list[Effect]:
        """Become the controller of `epoch`, from a copy of the committed image, which now also runs ahead."""
        assert not self.is_active
        assert epoch > self.epoch, "an epoch has one controller, once"
        self.reset()
        self.image, self.epoch, self.is_active = image, epoch, True
        if self.config.is_leader_rebalance_enabled:
            self.next_balance = after(now, self.config.leader_imbalance_check_ms)
        self.next_unclean = after(now, self.config.unclean_election_check_ms)
        effects: list[Effect] = [Report("info", f"active controller in epoch {epoch}")]
        if UNCLEAN_KEY in self.static:
            new = (strategy_in({UNCLEAN_KEY: self.static[UNCLEAN_KEY]}) or Strategy.BALANCED).value
            effects.append(Report("warning", f"{UNCLEAN_KEY} is deprecated: set {STRATEGY_KEY}={new} instead"))
        left_open = [] if image.transaction is None else [AbortTransactionRecord(reason="the controller has changed")]
        if left_open:
            effects.append(Report("warning", "aborts the metadata transaction that the controller before left open"))
        effects += self.write([*left_open, *plan_beginning(self.basis(now)), *plan_min_isr(self.basis(now))], now)
        self.recoveries.begin(image)
        for broker in image.brokers.values():
            if not broker.fenced:  # guard: silent-broker-inherited
                self.heartbeats.touch(broker.node_id, None, now)
                effects += self.heartbeats.suspect(broker)
        return effects

    def deactivate(self, now: Instant) -> list[Effect]:
        """Another node may lead now: what was written may never be committed, so nothing is promised."""
        if not self.is_active:
            return []
        self.is_active = False
        unanswered = [(w.to, w.request) for w in self.waiting] + [(a.to, a.request) for a in self.manual.asked]
        effects: list[Effect] = [Reply(to, refusal(request, ErrorCode.NOT_CONTROLLER)) for to, request in unanswered]
        self.reset()
        assert self.deadline() == NEVER, "nothing is due while another node is the controller"
        return [*effects, Report("info", f"no longer the active controller of epoch {self.epoch}")]

    # --- events

    def step(self, event: Event, now: Instant) -> list[Effect]:
        match event:
            case Received():
                return self.serve(event, now)
            case Probed(ProbeSent(node, epoch, attempt), why) if self.is_active:
                return self.probed(node, epoch, attempt, why, now)
            case Disconnected(connection) if self.is_active:
                self.manual.disconnected(connection)
                return self.disconnected(connection)
            case Answered(InquirySent(node, serial), message) if self.is_active:
                self.recoveries.answered(node, serial, message, now)
                return []
            case Failed(InquirySent(node, serial), _) if self.is_active:
                self.recoveries.answered(node, serial, None, now)
                return []
            case _:
                return []

    def serve(self, event: Received, now: Instant) -> list[Effect]:
        request = event.message
        if not self.is_active or len(self.waiting) + len(self.manual.asked) >= self.config.max_waiting:
            return [Reply(event.to, refusal(request, ErrorCode.NOT_CONTROLLER))]
        if is_manual(request, event.to.api_version):
            self.manual.begin(event, self.basis(now))
            return self.answer_elections(now)
        is_alive = isinstance(request, BrokerRegistrationRequest) and self.is_alive(request, now)
        plan = PLANS[type(request)](request, self.basis(now), event.to.api_version, is_alive)
        if not fits_in_batch(plan.records):  # Kafka: "Unable to perform excessively large batch operation."
            return [Reply(event.to, refusal(request, ErrorCode.POLICY_VIOLATION))]
        if plan.departure is not None:
            self.departures.put(NodeId(request.broker_id), plan.departure, now)
        effects = [*self.write(plan.records, now), *self.follow_up(event, plan, now)]
        return effects + self.promise(event.to, request, plan.response)

    def promise(self, to: ReplyTo, request: Any, response: Any) -> list[Effect]:
        """Answer as soon as everything is committed that was written so far."""
        assert self.is_active
        if self.last_written < self.high_watermark:  # guard: answers-before-it-is-committed
            return [Reply(to, response)]
        assert not self.waiting or self.waiting[-1].offset <= self.last_written, "answers wait in the order of offsets"
        self.waiting.append(Waiting(self.last_written, to, request, response))
        assert len(self.waiting) <= self.config.max_waiting
        return []

    def is_alive(self, request: BrokerRegistrationRequest, now: Instant) -> bool:
        """Is the registered incarnation in its session? Not if its connection is closed and the new incarnation stands
        where it stood: a broker that is restarted fast need not wait for the session of its former self (T29)."""
        assert self.is_active
        node = NodeId(request.broker_id)
        old = self.image.brokers.get(node)
        if old is None or not self.heartbeats.has_session(node, now):
            return False
        return self.heartbeats.is_connected(node) or not takes_place_of(request, old)

    def follow_up(self, event: Received, plan: Plan, now: Instant) -> list[Effect]:
        """What a request means beyond its records: signs of life, and elections that a configuration now allows."""
        assert self.is_active
        match event.message:
            case BrokerHeartbeatRequest(broker_id=node) if plan.response.error_code == ErrorCode.NONE:
                self.heartbeats.touch(NodeId(node), event.to.connection, now)
            case BrokerRegistrationRequest(broker_id=node) if plan.response.error_code == ErrorCode.NONE:
                if self.image.brokers[NodeId(node)].fenced:
                    self.heartbeats.remove(NodeId(node))
                self.heartbeats.touch(NodeId(node), event.to.connection, now)
            case UnregisterBrokerRequest(broker_id=node) if plan.records:
                self.heartbeats.remove(NodeId(node))
            case IncrementalAlterConfigsRequest() | AlterConfigsRequest():
                effects = self.write(completions(self.basis(now)), now) if concern(plan.records, MIN_ISR_KEY) else []
                return effects + (self.sweep_unclean(now) if concern(plan.records, *STRATEGY_KEYS) else [])
            case _:
                pass
        return []

    def disconnected(self, connection: int) -> list[Effect]:
        """A closed heartbeat connection is a reason to look, and no more."""
        node = self.heartbeats.disconnected(connection)
        broker = None if node is None else self.image.brokers.get(node)
        if broker is None or broker.fenced:
            return []
        return [*self.heartbeats.suspect(broker)]

    def probed(self, node: NodeId, epoch: BrokerEpoch, attempt: int, why: Failure | None, now: Instant) -> list[Effect]:
        assert self.is_active
        if not self.heartbeats.probed(node, epoch, attempt, why, now):
            return []
        return self.fence(node, "no process listens at its endpoint", now)

    def committed(self, high_watermark: int, now: Instant) -> list[Effect]:
        """Records below `high_watermark` are committed: what rests on them may be said."""
        if not self.is_active:
            return []
        self.high_watermark = max(self.high_watermark, high_watermark)
        effects: list[Effect] = []
        while self.waiting and self.waiting[0].offset < self.high_watermark:
            proven = self.waiting.popleft()
            effects.append(Reply(proven.to, proven.response))
        assert len(effects) <= self.config.max_waiting
        return effects

    # --- time

    def deadline(self) -> Instant:
        if not self.is_active:
            return NEVER
        recovery = min(self.recoveries.deadline(), self.manual.deadline(), self.departures.next)
        return min(self.next_balance, self.next_unclean, self.heartbeats.deadline(), recovery)

    def expire(self, now: Instant) -> list[Effect]:
        if not self.is_active:
            return []
        effects: list[Effect] = []
        for node, departure in self.departures.take_due(now):
            effects += self.depart(node, departure, now)
        for node in self.heartbeats.expired(now):
            self.counts.timed_out_heartbeats += 1
            effects += self.fence(node, f"no heartbeat for {self.config.session_timeout_ms} ms", now)
        for node in self.heartbeats.due(now):
            effects += self.heartbeats.probe(self.image.brokers[node])
        if self.next_balance <= now:
            changes, has_more = self.elections(Election.PREFERRED, now)
            self.next_balance = after(now, NEXT_ELECTIONS_MS if has_more else self.config.leader_imbalance_check_ms)
            effects += self.write(changes, now)
        if self.next_unclean <= now:
            effects += self.sweep_unclean(now)
        self.recoveries.expire(now)
        if self.manual.deadline() <= now:
            self.recoveries.is_due = True  # whoever has answered by then may be elected, before that is given up
        while self.recoveries.is_due:  # what is written may be reason to look again
            changes, more = self.recoveries.advance(self.basis(now), self.heartbeats.ends)
            effects += [*more, *self.write(changes, now), *self.answer_elections(now)]
        return effects

    def answer_elections(self, now: Instant) -> list[Effect]:
        """Elections by hand that have come to an end."""
        assert self.is_active
        done = self.manual.done(self.image, now)
        return [effect for asked, response in done for effect in self.promise(asked.to, asked.request, response)]

    def sweep_unclean(self, now: Instant) -> list[Effect]:
        """Whoever may lead a partition without a leader, cleanly or where the topic allows the loss, is elected."""
        assert self.is_active
        changes, has_more = self.elections(Election.KEEP, now)
        self.next_unclean = after(now, NEXT_ELECTIONS_MS if has_more else self.config.unclean_election_check_ms)
        return self.write(changes, now)

    def elections(self, election: Election, now: Instant) -> tuple[list[PartitionChangeRecord], bool]:
        """Not too many at once; and are there more?"""
        assert self.config.elections_per_check > 0
        changes = self.basis(now).elections(self.config.elections_per_check, election)
        return changes, len(changes) == self.config.elections_per_check

    def fence(self, node: NodeId, why: str, now: Instant) -> list[Effect]:
        assert node in self.image.brokers, "a session is of a registered broker"
        self.heartbeats.remove(node)
        broker = self.image.brokers[node]
        if broker.fenced:
            self.recoveries.is_due = True  # it is waited for no longer
            return []
        report = Report("warning", f"broker {node} is fenced: {why}")
        records, departure = plan_fencing(broker, self.basis(now))
        if departure is not None:
            self.departures.put(node, departure, now)  # also if it was about to shut down
        return [report, *self.write(records, now)]

    def depart(self, node: NodeId, departure: Departure, now: Instant) -> list[Effect]:
        """The next step of a broker that leaves thousands of ISRs, unless another incarnation has taken its place."""
        assert departure.record.broker_id == node
        broker = self.image.brokers.get(node)
        if broker is None or broker.epoch != departure.epoch or (broker.fenced and departure.record.fenced):
            return []
        changes, left = go_on(node, departure, self.basis(now))
        if left is not None:
            self.departures.put(node, left, now)
        return self.write((*changes, departure.record) if left is None else changes, now)

    # --- the ledger

    def basis(self, now: Instant) -> Basis:
        return Basis(
            self.image, self.config, self.static, self.rng, self.writer.next_offset, now, self.departures.by_broker
        )

    def write(self, records: Sequence[Any], now: Instant) -> list[Effect]:
        """Write them, run ahead with them, and say what they mean."""
        if not records:
            return []
        assert self.is_active
        reports: list[Effect] = [*reports_of(records, self.image)]
        self.counts.written(records, self.image)
        for record in records:  # before it is in the log: what nobody can apply would stop every node
            why = why_unfit(self.image, record)
            assert why is None, f"{why}: {record}"
            self.image.apply(record)
        self.image.take_delta()  # Nobody here asks what has changed, and it would only grow.
        first = self.writer.next_offset
        for batch in self.batches_of(records):
            self.last_written = self.writer.append(batch, now)
        assert self.last_written == first + len(records) - 1, "broker epochs are offsets of this very batch"
        self.recoveries.written(records, self.image)
        return reports

    def batches_of(self, records: Sequence[Any]) -> list[list[Any]]:
        """One, or several if they change thousands of partitions and nothing else: each change stands for itself, and
        nodes apply whole batches in a step."""
        assert records
        limit = self.config.changes_per_step
        if len(records) <= limit or any(type(record) is not PartitionChangeRecord for record in records):
            return [list(records)]
        return [list(records[at : at + limit]) for at in range(0, len(records), limit)]

    def check(self) -> None:
        if not self.is_active:  # its image is that of an earlier time, and nothing uses it
            assert not self.waiting
            assert not self.heartbeats.ends
            assert not self.manual.asked
            return
        self.image.check()
        self.recoveries.check(self.image)
        self.heartbeats.check()
        offsets = [waiting.offset for waiting in self.waiting]
        assert len(offsets) <= self.config.max_waiting
        assert offsets == sorted(offsets)
        assert all(offset >= self.high_watermark for offset in offsets)
        assert set(self.heartbeats.ends) <= set(self.image.brokers)
        unfenced = {b.node_id for b in self.image.brokers.values() if not b.fenced}
        assert unfenced <= {*self.heartbeats.ends, *self.departures.by_broker}
        self.departures.check()
        for topic in self.image.topics.values():
            for partition in topic.partitions.values():
                assert partition.leader < 0 or self.image.lives(partition.leader, partition)
                assert len(partition.isr) < 2 or all(self.image.lives(node, partition) for node in partition.isr)


# Which plan decides about a request: (request, basis, API version, is the broker's session alive?).
PLANS: dict[type, Callable[[Any, Basis, int, bool], Plan]] = {
    AcknowledgeLossesRequest: lambda request, basis, *_: plan_acknowledgement(request, basis),
    AllocateProducerIdsRequest: lambda request, basis, *_: plan_allocation(request, basis),
    AlterClientQuotasRequest: lambda request, basis, *_: plan_alter_quotas(request, basis),
    AlterConfigsRequest: lambda request, basis, *_: plan_replace_configs(request, basis),
    AlterPartitionRequest: lambda request, basis, version, _: plan_alter_partition(request, basis, version),
    AlterPartitionReassignmentsRequest: lambda request, basis, *_: plan_reassignments(request, basis),
    AlterUserScramCredentialsRequest: lambda request, basis, *_: plan_alter_credentials(request, basis),
    AssignReplicasToDirsRequest: lambda request, basis, *_: plan_assign_replicas(request, basis),
    BrokerHeartbeatRequest: lambda request, basis, *_: plan_heartbeat(request, basis),
    BrokerRegistrationRequest: lambda request, basis, _, alive: plan_registration(request, basis, alive),
    CreateAclsRequest: lambda request, basis, *_: plan_create_acls(request, basis),
    CreatePartitionsRequest: lambda request, basis, *_: plan_create_partitions(request, basis),
    CreateTopicsRequest: lambda request, basis, *_: plan_create_topics(request, basis),
    DeleteAclsRequest: lambda request, basis, *_: plan_delete_acls(request, basis),
    DeleteTopicsRequest: lambda request, basis, version, _: plan_delete_topics(request, basis, version),
    ElectLeadersRequest: lambda request, basis, *_: plan_elections(request, basis),
    IncrementalAlterConfigsRequest: lambda request, basis, *_: plan_alter_configs(request, basis),
    ListPartitionReassignmentsRequest: lambda request, basis, *_: plan_list(request, basis),
    UnregisterBrokerRequest: lambda request, basis, *_: plan_unregistration(request, basis),
    UpdateFeaturesRequest: lambda request, basis, *_: plan_update_features(request, basis),
}
assert PLANS.keys() == REFUSALS.keys()
