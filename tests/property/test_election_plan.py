"""The plan of an election by hand, beside the controller that does it: who leads, and what stands in the ledger."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.base.ids import NOBODY, BrokerEpoch, LeaderEpoch, NodeId, TopicIdPartition, Uuid
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.replica_logs import LogReport, ReplicaLog, Unasked
from strandline.controller.basis import Basis, ControllerConfig, Refusal
from strandline.controller.partition import Wish, plan_change
from strandline.controller.partitions.elections import plan_election as plan_unclean
from strandline.controller.partitions.inquiries import Answer
from strandline.controller.partitions.manual import WAYS, why_not
from strandline.controller.partitions.recovery import Recoveries
from strandline.diagnosis.election_plan import ElectionResult, Kind, plan_election
from strandline.metadata.features import ELR_FEATURE
from strandline.metadata.image import TOPIC_RESOURCE, Image
from strandline.metadata.records import PartitionChangeRecord
from strandline.metadata.registrations import (
    MIGRATING_DIRECTORY,
    Broker,
    Endpoint,
    Partition,
    Topic,
    effective_min_isr,
)
from strandline.wire.messages.topics.elect_leaders import ElectLeadersRequest, TopicPartitions

TOPIC = Uuid(b"t" * 16)
AT = TopicIdPartition(TOPIC, 0)
EPOCH = 7  # nobody leads since it began
KINDS = [kind for kind in Kind if kind is not Kind.PREFERRED]


class Case(Value, frozen=True):
    partition: Partition
    alive: tuple[NodeId, ...]
    min_isr: int
    is_elr_enabled: bool
    is_managed: bool
    reports: tuple[LogReport, ...]
    kind: Kind
    designated: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    replicas = tuple(map(NodeId, draw(st.lists(st.integers(1, 4), unique=True, min_size=1))))
    sets = {node: draw(st.sampled_from(["isr", "elr", "known", "known", "", "", ""])) for node in replicas}
    moves = {node: draw(st.sampled_from(["adding", "removing", "", "", ""])) for node in replicas}
    if all(move == "removing" for move in moves.values()):
        moves = dict.fromkeys(replicas, "")

    def those(of: dict[NodeId, str], what: str) -> tuple[NodeId, ...]:
        return tuple(node for node in replicas if of[node] == what)

    partition = Partition(
        replicas=replicas,
        directories=(MIGRATING_DIRECTORY,) * len(replicas),
        isr=those(sets, "isr"),
        leader=NOBODY,
        leader_epoch=LeaderEpoch(EPOCH),
        removing_replicas=those(moves, "removing"),
        adding_replicas=those(moves, "adding"),
        elr=those(sets, "elr"),
        last_known_elr=those(sets, "known"),
        last_known_leader=draw(st.sampled_from([NOBODY, *replicas])),
        original_replicas=tuple(node for node in replicas if moves[node] != "adding") if any(moves.values()) else (),
    )
    log = st.builds(
        ReplicaLog,
        last_epoch=st.integers(4, 6),
        end_offset=st.integers(5, 8),
        high_watermark=st.integers(0, 6),
        current_epoch=st.sampled_from([EPOCH, EPOCH, EPOCH - 1]),
        is_whole=st.booleans(),
        replica=st.just(0),
    )
    reported: list[LogReport] = []
    for node in replicas:
        said = draw(st.one_of(log, log, st.none()))
        reported.append(Unasked(node, "…") if said is None else ReplicaLog(**{**as_dict(said), "replica": node}))
    return Case(
        partition,
        tuple(node for node in replicas if draw(st.booleans())),
        draw(st.integers(1, 4)),
        draw(st.booleans()),
        draw(st.booleans()),
        tuple(reported),
        draw(st.sampled_from(KINDS)),
        draw(st.integers(1, 4)),
    )


def as_dict(log: ReplicaLog) -> dict[str, object]:
    return {name: getattr(log, name) for name in log.__struct_fields__}


def state_of(case: Case) -> PartitionState:
    """What the metadata tells clients of it."""
    partition = case.partition
    return PartitionState(
        at=Place("t", 0),
        replicas=partition.replicas,
        isr=partition.isr,
        leader=-1,
        leader_epoch=EPOCH,
        elr=partition.elr,
        last_known_elr=partition.last_known_elr,
        last_known_leader=partition.last_known_leader,
        offline=tuple(node for node in partition.replicas if node not in case.alive),
        adding=partition.adding_replicas,
        removing=partition.removing_replicas,
        min_isr=effective_min_isr(case.min_isr, partition.replicas, partition.adding_replicas),
        partition_epoch=3,
    )


def basis_of(case: Case) -> Basis:
    image = Image()
    image.topics[TOPIC] = Topic("t", TOPIC, {0: case.partition})
    image.topic_ids["t"] = TOPIC
    image.configs[TOPIC_RESOURCE, "t"] = {"min.insync.replicas": str(case.min_isr)}
    image.features[ELR_FEATURE] = int(case.is_elr_enabled)
    for node in case.partition.replicas:
        image.brokers[node] = Broker(
            node, Uuid(bytes([node]) * 16), BrokerEpoch(node), {"L": Endpoint("h", 1)}, fenced=node not in case.alive
        )
    return Basis(image, ControllerConfig(is_recovery_managed=case.is_managed), {}, Random(1), 100, Instant(1000))


def decided(case: Case) -> PartitionChangeRecord | None:
    """What the controller writes, at the end of the time that the request has; None: it elects nobody."""
    basis = basis_of(case)
    if case.kind is Kind.UNCLEAN:
        outcome = plan_unclean("t", 0, case.kind.value, "", basis)
        return None if isinstance(outcome, Refusal) or outcome.leader < 0 else outcome
    wanted = (TopicPartitions(topic="t", partitions=(0,), designated_leaders=(case.designated,)),)
    request = ElectLeadersRequest(election_type=case.kind.value, topic_partitions=wanted)
    designated = case.designated if case.kind is Kind.DESIGNATION else None
    if isinstance(why_not("t", 0, designated, request, basis), Refusal):
        return None
    recoveries = Recoveries("L")
    recoveries.begin(basis.image)
    leader = NOBODY if designated is None else NodeId(designated)
    recoveries.begin_manual(AT, WAYS[case.kind.value][1], leader, "…", Instant(0))
    recoveries.answers[AT] = {
        NodeId(log.replica): Answer(log.replica, log.current_epoch, log.evidence, log.is_whole)
        for log in case.reports
        if isinstance(log, ReplicaLog)
    }
    changes, _ = recoveries.advance(basis, ())
    return changes[0] if changes else None


@settings(max_examples=800, deadline=None)
@given(cases())
def test_the_plan_is_what_the_controller_does(case: Case) -> None:
    plan = plan_election(state_of(case), case.reports, case.kind, case.designated, case.is_elr_enabled)
    basis = basis_of(case)
    if plan.candidate.outcome is ElectionResult.CLEAN:  # the controller has elected it before anybody asks
        rules = basis.rules(basis.image.topics[TOPIC])
        change = plan_change(AT, case.partition, Wish(), rules)
        assert change is not None
        assert (change.leader, change.losses) == (plan.candidate.node, ())
        return
    change = decided(case)
    assert (NOBODY if change is None else change.leader) == plan.candidate.node
    if change is None:
        assert plan.candidate.outcome is ElectionResult.NOBODY
    elif not change.losses:
        assert plan.loss is None
    else:
        (entry,), planned = change.losses, plan.loss
        assert planned is not None
        assert (planned.replica, planned.old_epoch, planned.new_epoch) == (
            entry.replica,
            entry.old_epoch,
            entry.new_epoch,
        )
        if case.kind is not Kind.UNCLEAN:  # the controller asks no replica there; the plan has what they said
            assert (planned.start, planned.end, planned.certainty) == (entry.start, entry.end, entry.certainty)
