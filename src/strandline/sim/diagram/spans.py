"""What lasts, read off a trace of moments: lives, pauses, controllers, leaderships, states of a partition.

A claim (to be the controller, to lead a partition) is believed until its machine dies, follows, or is followed by
another claim after the last time that it was heard of: so two that claim the same at once are both seen.
"""

from collections.abc import Iterable, Sequence

from strandline.base.value import Value
from strandline.sim.world.trace import Kind, Moment, Trace

DEATHS = (Kind.KILLED, Kind.POWER_LOST, Kind.HALTED)


class Span(Value, frozen=True):
    start_ms: int
    end_ms: int
    machine: str
    label: str
    text: str  # the whole of it
    partition: str = ""


class Step(Value, frozen=True):
    at_ms: int
    high_watermark: int


def lives(trace: Trace, machine: str, end_ms: int) -> list[Span]:
    """While its process exists."""
    found: list[Span] = []
    begun: int | None = None
    for moment in of_machine(trace, machine):
        if moment.kind in DEATHS and begun is not None:
            found.append(Span(begun, moment.at_ms, machine, "runs", "runs"))
            begun = None
        elif moment.kind is Kind.STARTED and begun is None:
            begun = moment.at_ms
    if begun is not None:
        found.append(Span(begun, end_ms, machine, "runs", "runs"))
    return found


def pauses(trace: Trace, machine: str, end_ms: int) -> list[Span]:
    found: list[Span] = []
    begun: int | None = None
    for moment in of_machine(trace, machine):
        if begun is not None and (moment.kind in DEATHS or moment.kind in (Kind.RESUMED, Kind.STARTED)):
            found.append(paused(begun, moment.at_ms, machine))
            begun = None
        elif moment.kind is Kind.PAUSED:
            begun = moment.at_ms
    if begun is not None:
        found.append(paused(begun, end_ms, machine))
    return found


def paused(start_ms: int, end_ms: int, machine: str) -> Span:
    return Span(start_ms, end_ms, machine, "stands still", f"stands still for {end_ms - start_ms:,} ms")


def of_machine(trace: Trace, machine: str) -> Iterable[Moment]:
    return (moment for moment in trace.moments if moment.machine == machine)


# --- claims


class Claim:
    def __init__(self, moment: Moment, label: str) -> None:
        self.machine = moment.machine
        self.label = label
        self.text = moment.text
        self.partition = moment.partition
        self.start = self.heard = moment.at_ms
        self.end = -1


def controllers(trace: Trace, end_ms: int) -> list[Span]:
    return claims(trace, [(m, m.text) for m in trace.moments if m.kind is Kind.CONTROLLER], end_ms)


def leaderships(trace: Trace, partition: str, end_ms: int) -> list[Span]:
    heard = [
        (m, f"epoch {m.leader_epoch}")
        for m in trace.moments
        if m.kind in (Kind.LEADS, Kind.HIGH_WATERMARK) and m.partition == partition and m.machine
    ]
    return claims(trace, heard, end_ms)


def claims(trace: Trace, heard: Sequence[tuple[Moment, str]], end_ms: int) -> list[Span]:
    endings = [m for m in trace.moments if m.kind in DEATHS or m.kind is Kind.FOLLOWS or is_resignation(m)]
    found: list[Claim] = []
    latest: dict[str, Claim] = {}
    for moment, label in heard:
        known = latest.get(moment.machine)
        if known is not None and known.label == label and end_of_belief(endings, known, moment.at_ms) == moment.at_ms:
            known.heard = moment.at_ms
        else:
            latest[moment.machine] = Claim(moment, label)
            found.append(latest[moment.machine])
    for claim in found:
        others = (
            m.at_ms
            for m, label in heard
            if m.at_ms > claim.heard and (m.machine, label) != (claim.machine, claim.label)
        )
        claim.end = end_of_belief(endings, claim, min(others, default=end_ms))
    return [Span(c.start, max(c.start, c.end), c.machine, c.label, c.text, c.partition) for c in found]


def is_resignation(moment: Moment) -> bool:
    """Only a node's own log shows when a controller gives up."""
    return moment.kind is Kind.REPORT and "no longer the active controller" in moment.text


def end_of_belief(endings: Sequence[Moment], claim: Claim, at_most_ms: int) -> int:
    """When its machine died, or began to follow."""
    for moment in endings:
        is_its = moment.machine == claim.machine and moment.partition in ("", claim.partition)
        if is_resignation(moment) and claim.partition:
            continue
        if is_its and claim.heard <= moment.at_ms < at_most_ms:
            return moment.at_ms
    return at_most_ms


def states(trace: Trace, partition: str, end_ms: int) -> list[Span]:
    """What the committed metadata says of a partition, from one change to the next."""
    changes = [m for m in trace.moments if m.kind is Kind.ISR and m.partition == partition]
    ends = [*(m.at_ms for m in changes), end_ms][1:]
    return [
        Span(m.at_ms, until, "", m.text.removeprefix(f"{partition}: ").partition(" (")[0], m.text, partition)
        for m, until in zip(changes, ends, strict=True)
    ]


def steps(trace: Trace, partition: str, leadership: Span) -> list[Step]:
    """The high watermark during one leadership, flat between its steps."""
    found: list[Step] = []
    for m in trace.moments:
        if m.kind not in (Kind.LEADS, Kind.HIGH_WATERMARK) or m.partition != partition or m.high_watermark < 0:
            continue
        if m.machine == leadership.machine and leadership.start_ms <= m.at_ms <= leadership.end_ms:
            found.append(Step(m.at_ms, m.high_watermark))
    return found
