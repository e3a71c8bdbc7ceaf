"""What an election by hand would do, shown before it is done: who would lead, by what right, and what it would lose.

Facts in (the metadata, what replicas say of their logs), a plan out; nothing is asked here. Who can lead is what the
controller's own functions say of these facts: `choice` of a recovery, `decide` of the partition builder; what it costs,
`loses_nothing` and `loss_of` of the ledger. The controller has answers of its own: the plan is what it comes to if
nothing changes in between, and who has not answered until now does not answer at all.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from strandline.base.ids import NOBODY, NodeId
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.replica_logs import LogReport, ReplicaLog, Unasked
from strandline.controller.partition import How, LastResort, Rules, Wish, decide
from strandline.controller.partitions.inquiries import Answer
from strandline.controller.partitions.lossless import loses_nothing
from strandline.controller.partitions.recovery import Recovery, candidates, choice
from strandline.diagnosis import replica_logs
from strandline.diagnosis.loss_words import offsets, range_words, records
from strandline.diagnosis.partitions import brokers, registered
from strandline.diagnosis.replica_logs import words
from strandline.metadata.losses import loss_of
from strandline.metadata.records import LossEvent
from strandline.metadata.strategy import Strategy


class Kind(Enum):
    """Election types of ElectLeaders; those from 2 on are KIP-966's, in version 3."""

    PREFERRED = 0
    UNCLEAN = 1
    DESIGNATION = 2
    LONGEST_LOG_BALANCED = 3
    LONGEST_LOG_AGGRESSIVE = 4


class ElectionResult(Enum):
    NOT_NEEDED = "has a leader"
    CLEAN = "loses nothing"
    UNCLEAN = "may lose records"
    NOBODY = "elects nobody"


class Candidate(Value, frozen=True):
    outcome: ElectionResult
    node: int  # -1: nobody
    why: str


class Plan(Value, frozen=True):
    at: Place
    kind: Kind
    candidate: Candidate
    reports: tuple[LogReport, ...]  # what the replicas say, in their order
    loss: LossEvent | None = None  # what the ledger would say; None: nothing is lost

    @property
    def log(self) -> ReplicaLog | None:
        return log_of(self.reports, self.candidate.node)

    @property
    def certainly_lost(self) -> tuple[int, int]:
        """Half-open: what is known to have been committed, and the candidate does not have.

        All below a replica's high watermark was committed. One whose last epoch is older proves nothing new: what it
        has and the candidate does not was lost already, when the candidate's epoch began.
        """
        log = self.log
        if self.loss is None or log is None:
            return (0, 0)
        reports = [other.high_watermark for other in logs(self.reports) if other.last_epoch >= log.last_epoch]
        return (log.end_offset, max(log.end_offset, *reports))

    @property
    def longer(self) -> list[ReplicaLog]:
        """Those who answered and have more than the candidate."""
        log = self.log
        return [] if log is None or self.loss is None else [t for t in logs(self.reports) if t.rank > log.rank]


def plan_election(
    state: PartitionState,
    reports: tuple[LogReport, ...],
    kind: Kind,
    designated: int = -1,
    is_elr_enabled: bool = True,  # without it who led last is forgotten, and unclean elections do not prefer it
) -> Plan:
    if state.leader >= 0:
        return Plan(
            state.at, kind, Candidate(ElectionResult.NOT_NEEDED, state.leader, f"broker {state.leader} leads"), reports
        )
    if kind is not Kind.DESIGNATION:
        designated = NOBODY
    old = registered(state)
    clean = decide(old, Wish(), rules_of(state, LastResort.NOBODY, is_elr_enabled))[1]
    if clean.leader != NOBODY:
        why = "it is in sync" if clean.how is How.IN_SYNC else "it is eligible"
        return Plan(state.at, kind, Candidate(ElectionResult.CLEAN, clean.leader, why), reports)
    known = known_answers(state, reports, designated)
    best = None if kind is Kind.UNCLEAN else choice(recovery_of(kind, designated), old, (), known, Instant(0))
    resort = LastResort.ANYBODY if kind is Kind.UNCLEAN else LastResort.NOBODY
    leader = decide(old, Wish(designated=best), rules_of(state, resort, is_elr_enabled))[1].leader
    if leader == NOBODY:
        return Plan(
            state.at,
            kind,
            Candidate(ElectionResult.NOBODY, NOBODY, why_nobody(state, kind, designated, known)),
            reports,
        )
    candidate = Candidate(ElectionResult.UNCLEAN, leader, why_candidate(state, kind, leader, known))
    if best is not None and loses_nothing(old, best, known):
        return Plan(state.at, kind, candidate, reports)
    log = log_of(reports, leader)
    loss = loss_of(
        leader,
        last_led=state.leader_epoch - 1,  # nobody leads now
        old_epoch=state.leader_epoch,
        evidence=None if log is None else log.evidence,
        time_ms=0,
        cause=candidate.why,
    )
    return Plan(state.at, kind, candidate, reports, loss)


def rules_of(state: PartitionState, last_resort: LastResort, is_elr_enabled: bool) -> Rules:
    return Rules(
        is_acceptable=lambda node, _: node in state.online,
        last_resort=last_resort,
        min_isr=max(1, state.min_isr),
        is_elr_enabled=is_elr_enabled,
        now=0,
    )


def recovery_of(kind: Kind, designated: int) -> Recovery:
    """At its end, when who has not answered is not waited for any longer."""
    strategy = Strategy.BALANCED if kind is Kind.LONGEST_LOG_BALANCED else Strategy.AGGRESSIVE
    return Recovery(strategy, Instant(0), "", NodeId(designated), is_manual=True)


def known_answers(state: PartitionState, reports: Iterable[LogReport], designated: int) -> dict[NodeId, Answer]:
    """What the controller would believe: of replicas that are online, and have heard of the latest election."""
    asked = (*candidates(registered(state)), designated)
    return {
        NodeId(log.replica): Answer(0, log.current_epoch, log.evidence, log.is_whole)
        for log in logs(reports)
        if log.replica in asked and log.replica in state.online and log.current_epoch == state.leader_epoch
    }


# --- why


def why_candidate(state: PartitionState, kind: Kind, leader: NodeId, known: Mapping[NodeId, Answer]) -> str:
    match kind:
        case Kind.DESIGNATION:
            return "it was designated"
        case Kind.LONGEST_LOG_BALANCED | Kind.LONGEST_LOG_AGGRESSIVE:
            answered = f"{len(known)} of {len(list(candidates(registered(state))))}"
            return f"of the replicas that answered, {answered}, it has the longest log"
    led_last = leader == state.last_known_leader and not state.isr and not state.elr
    return "it was the last leader" if led_last else "it is the first replica that is online"


def why_nobody(state: PartitionState, kind: Kind, designated: int, known: Mapping[NodeId, Answer]) -> str:
    if not state.online:
        return "no replica is online"
    match kind:
        case Kind.DESIGNATION if designated not in state.replicas:
            return f"broker {designated} has no replica of it; {list(state.replicas)} have"
        case Kind.DESIGNATION if designated not in state.online:
            return f"broker {designated} is not online"
        case Kind.DESIGNATION:
            return f"broker {designated} does not say what its log has, and is not elected before it does"
        case Kind.LONGEST_LOG_BALANCED:
            return why_not_balanced(state, known)
    but = ", but for those that are still being added" if is_growing(state) else ""
    return f"no replica that is online has answered{but}"


def why_not_balanced(state: PartitionState, known: Mapping[NodeId, Answer]) -> str:
    if not state.last_known_elr:
        eligible = f"{brokers(state.elr)} may return, still eligible" if state.elr else ""
        return f"LastKnownElr is empty, and {eligible or 'the last eligible replicas are unknown'}"
    eligible_last = [*state.isr, *state.elr, *state.last_known_elr]
    missing = [node for node in eligible_last if node not in state.online]
    silent = [node for node in eligible_last if node not in known]
    rest = f"{missing} are not online" if missing else f"{silent} have not answered"
    return f"all of {eligible_last}, the last eligible replicas, must answer, and {rest}"


def is_growing(state: PartitionState) -> bool:
    return len(list(candidates(registered(state)))) < len(state.replicas)


# --- what replicas say


def logs(reports: Iterable[LogReport]) -> list[ReplicaLog]:
    return [row for row in reports if isinstance(row, ReplicaLog)]


def log_of(reports: Iterable[LogReport], node: int) -> ReplicaLog | None:
    return next((log for log in logs(reports) if log.replica == node), None)


# --- in words


def lines_of(plan: Plan) -> list[str]:
    """For a person: one partition's plan."""
    candidate, log = plan.candidate, plan.log
    if candidate.outcome is ElectionResult.NOT_NEEDED:
        return [f"{plan.at}: nothing to do, {candidate.why}"]
    lines = [f"{plan.at}: {headline(plan)}"]
    if log is not None:
        lines.append(f"  it has: {words(log).partition(': ')[2]}")
    lines += [f"  answered: {words(row)}" for row in logs(plan.reports) if row.replica != candidate.node]
    lines += [f"  not asked: {words(row)}" for row in plan.reports if isinstance(row, Unasked)]
    lines += [f"  lost: {text}" for text in losses_of(plan)]
    if plan.kind is Kind.UNCLEAN and plan.loss is not None:
        lines.append("  note: this type asks no replica, so the ledger will not know what was lost; designation does")
    return lines


def headline(plan: Plan) -> str:
    candidate = plan.candidate
    if candidate.outcome is ElectionResult.NOBODY:
        return f"nobody would lead: {candidate.why}"
    return f"broker {candidate.node} would lead: {candidate.why}"


def losses_of(plan: Plan) -> list[str]:
    """What would be lost, the plainest first."""
    if plan.candidate.outcome is ElectionResult.NOBODY:
        return []
    if plan.loss is None:
        return ["nothing"]
    found = []
    start, end = plan.certainly_lost
    if end > start:
        found.append(f"for certain {records(end - start)} that had been committed{offsets(start, end)}")
    found.append(range_words(plan.loss.start, plan.loss.end, plan.loss.certainty))
    for log in plan.longer:
        beyond = log.end_offset - plan.loss.start
        what = f"{records(beyond)} from offset {plan.loss.start} on" if beyond > 0 else "records of a later epoch"
        found.append(f"what broker {log.replica} has: {what}, whether they were committed or not")
    return found


def as_json(plan: Plan) -> dict[str, Any]:
    start, end = plan.certainly_lost
    return {
        "topic": plan.at.topic,
        "partition": plan.at.partition,
        "outcome": plan.candidate.outcome.name.lower(),
        "candidate": plan.candidate.node,
        "why": plan.candidate.why,
        "replicas": [replica_logs.as_json(row) for row in plan.reports],
        "loss": None
        if plan.loss is None
        else {
            "start": plan.loss.start,
            "end": plan.loss.end,
            "certainty": plan.loss.certainty,
            "certain_start": start,
            "certain_end": end,
            "words": losses_of(plan),
        },
    }
