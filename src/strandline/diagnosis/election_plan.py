"""What an election by hand would do, told before it is done: who would lead, by what right, and what it would lose.

Facts in (the metadata, what replicas say of their logs), a plan out; nothing is asked here. The controller decides by
itself, with answers of its own: the plan is what it comes to if nothing changes in between.

  - Whoever is in the ISR, or eligible while the ISR is empty, goes before everybody: that loses nothing.
  - Of several logs the one with the highest (last epoch, end offset) counts as the longest, of equal ones the first in
    the order of the replicas.
  - Only who is online can lead; and who has not heard of the latest election says nothing that counts.
  - Balanced elects only if it is known who was eligible last, and all of these have answered, and all who still are.
  - A replica that is still being added has no longest log. It can be designated; unclean elections take it last.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any

from strandline.base.ids import NodeId
from strandline.base.value import Value
from strandline.diagnosis import replica_logs
from strandline.diagnosis.loss_words import offsets, range_words, records
from strandline.diagnosis.partitions import PartitionState, Place, brokers
from strandline.diagnosis.replica_logs import ReplicaLog, Told, Unasked, words
from strandline.metadata.losses import loss_of
from strandline.metadata.records import LossEvent


class Kind(Enum):
    """Election types of ElectLeaders; those from 2 on are KIP-966's, in version 3."""

    PREFERRED = 0
    UNCLEAN = 1
    DESIGNATION = 2
    LONGEST_LOG_BALANCED = 3
    LONGEST_LOG_AGGRESSIVE = 4


class Outcome(Enum):
    NOT_NEEDED = "has a leader"
    CLEAN = "loses nothing"
    UNCLEAN = "may lose records"
    NOBODY = "elects nobody"


class Candidate(Value, frozen=True):
    outcome: Outcome
    node: int  # -1: nobody
    why: str


class Plan(Value, frozen=True):
    at: Place
    kind: Kind
    candidate: Candidate
    told: tuple[Told, ...]  # what the replicas say, in their order
    loss: LossEvent | None = None  # what the ledger would say; None: nothing is lost

    @property
    def log(self) -> ReplicaLog | None:
        return log_of(self.told, self.candidate.node)

    @property
    def certainly_lost(self) -> tuple[int, int]:
        """Half-open: what is known to have been committed, and the candidate does not have.

        All below a replica's high watermark was committed. One whose last epoch is older tells of nothing new: what it
        has and the candidate does not was lost already, when the candidate's epoch began.
        """
        log = self.log
        if self.loss is None or log is None:
            return (0, 0)
        told = [other.high_watermark for other in logs(self.told) if other.last_epoch >= log.last_epoch]
        return (log.end_offset, max(log.end_offset, *told))

    @property
    def longer(self) -> list[ReplicaLog]:
        """Those who answered and have more than the candidate."""
        log = self.log
        return [] if log is None or self.loss is None else [t for t in logs(self.told) if t.rank > log.rank]


def plan_election(state: PartitionState, told: tuple[Told, ...], kind: Kind, designated: int = -1) -> Plan:
    candidate = choose(state, told, kind, designated)
    loss = None
    if candidate.outcome is Outcome.UNCLEAN:
        log = log_of(told, candidate.node)
        loss = loss_of(
            NodeId(candidate.node),
            last_led=state.leader_epoch - 1,  # nobody leads now
            old_epoch=state.leader_epoch,
            evidence=None if log is None else log.evidence,
            time_ms=0,
            cause=candidate.why,
        )
    return Plan(state.at, kind, candidate, told, loss)


def choose(state: PartitionState, told: tuple[Told, ...], kind: Kind, designated: int) -> Candidate:
    if state.leader >= 0:
        return Candidate(Outcome.NOT_NEEDED, state.leader, f"broker {state.leader} leads")
    clean = clean_candidate(state)
    if clean is not None:
        return clean
    if not state.online:
        return nobody("no replica is online")
    match kind:
        case Kind.DESIGNATION:
            return designated_candidate(state, designated)
        case Kind.LONGEST_LOG_BALANCED:
            return balanced_candidate(state, told)
        case Kind.LONGEST_LOG_AGGRESSIVE:
            return longest_candidate(state, told)
    if not state.isr and not state.elr and state.last_known_leader in state.online:
        return Candidate(Outcome.UNCLEAN, state.last_known_leader, "it led last")
    first = min(state.online, key=lambda node: node in state.adding)
    return Candidate(Outcome.UNCLEAN, first, "it is the first replica that is online")


def clean_candidate(state: PartitionState) -> Candidate | None:
    for node in state.online:
        if node in state.isr:
            return Candidate(Outcome.CLEAN, node, "it is in sync")
    for node in state.online:
        if not state.isr and node in state.elr:
            return Candidate(Outcome.CLEAN, node, "it is eligible")
    return None


def designated_candidate(state: PartitionState, node: int) -> Candidate:
    if node not in state.replicas:
        return nobody(f"broker {node} has no replica of it; {list(state.replicas)} have")
    if node not in state.online:
        return nobody(f"broker {node} is not online")
    return Candidate(Outcome.UNCLEAN, node, "it was designated")


def balanced_candidate(state: PartitionState, told: tuple[Told, ...]) -> Candidate:
    known = state.last_known_elr
    if not known:
        eligible = f"{brokers(state.elr)} may return, still eligible" if state.elr else ""
        return nobody(f"LastKnownElr is empty, and {eligible or 'nobody knows who was eligible last'}")
    known = (*state.isr, *state.elr, *known)
    missing = [node for node in known if node not in state.online]
    if missing:
        return nobody(f"all of {list(known)} must answer, who were eligible last, and {missing} are not online")
    silent = [node for node in known if current_log(state, told, node) is None]
    if silent:
        return nobody(f"all of {list(known)} must answer, who were eligible last, and {silent} have not answered")
    return longest_candidate(state, told)


def longest_candidate(state: PartitionState, told: tuple[Told, ...]) -> Candidate:
    searched = [node for node in state.searched if node in state.online]
    found = [log for node in searched if (log := current_log(state, told, node)) is not None]
    if not found:
        but = ", but for those that are still being added" if state.searched != state.replicas else ""
        return nobody(f"no replica that is online has answered{but}")
    answered = f"{len(found)} of {len(state.searched)}"
    best = max(found, key=lambda log: log.rank)  # the first of equal ones
    return Candidate(
        Outcome.UNCLEAN, best.replica, f"of the replicas that answered, {answered}, it has the longest log"
    )


def nobody(why: str) -> Candidate:
    return Candidate(Outcome.NOBODY, -1, why)


def logs(told: Iterable[Told]) -> list[ReplicaLog]:
    return [row for row in told if isinstance(row, ReplicaLog)]


def log_of(told: Iterable[Told], node: int) -> ReplicaLog | None:
    return next((log for log in logs(told) if log.replica == node), None)


def current_log(state: PartitionState, told: Iterable[Told], node: int) -> ReplicaLog | None:
    log = log_of(told, node)
    return log if log is not None and log.current_epoch == state.leader_epoch else None


# --- in words


def lines_of(plan: Plan) -> list[str]:
    """For a person: one partition's plan."""
    candidate, log = plan.candidate, plan.log
    if candidate.outcome is Outcome.NOT_NEEDED:
        return [f"{plan.at}: nothing to do, {candidate.why}"]
    lines = [f"{plan.at}: {headline(plan)}"]
    if log is not None:
        lines.append(f"  it has: {words(log).partition(': ')[2]}")
    lines += [f"  answered: {words(row)}" for row in logs(plan.told) if row.replica != candidate.node]
    lines += [f"  not asked: {words(row)}" for row in plan.told if isinstance(row, Unasked)]
    lines += [f"  lost: {text}" for text in losses_of(plan)]
    if plan.kind is Kind.UNCLEAN and plan.loss is not None:
        lines.append("  note: this type asks no replica, so the ledger will not know what was lost; designation does")
    return lines


def headline(plan: Plan) -> str:
    candidate = plan.candidate
    if candidate.outcome is Outcome.NOBODY:
        return f"nobody would lead: {candidate.why}"
    return f"broker {candidate.node} would lead: {candidate.why}"


def losses_of(plan: Plan) -> list[str]:
    """What would be lost, the plainest first."""
    if plan.candidate.outcome is Outcome.NOBODY:
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
        "replicas": [replica_logs.as_json(row) for row in plan.told],
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
