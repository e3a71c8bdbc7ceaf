"""Which messages are drawn, and how: each as an arrow, and from afar many alike as one broad one.

- A message between a machine and itself, and one that names only partitions of no concern, are left out.
- The latest come first: what is over the limit is missing at the beginning, and counted.
- From afar, an unbroken sequence of alike routine requests is one ribbon, and its answers go without saying. Lost
  ones stay alone.
"""

from bisect import bisect_right
from collections.abc import Sequence

from strandline.base.value import Value
from strandline.sim.world.trace import Kind, Passage, Trace

LIMIT = 10_000
GAP_MS = 250  # between two messages of one ribbon, at most
ALONE = 3  # as many alike are still drawn one by one

FETCH, READ, PRODUCE, ELECTION, BROKER, PARTITION, GROUP, OTHER = (
    "fetch", "read", "produce", "election", "broker", "partition", "group", "other",
)  # fmt: skip
LABELS = {
    FETCH: "Fetch between nodes",
    READ: "Fetch of clients",
    PRODUCE: "Produce",
    ELECTION: "Vote, Begin/EndQuorumEpoch",
    BROKER: "BrokerHeartbeat, -Registration",
    PARTITION: "AlterPartition",
    GROUP: "groups and offsets",
    OTHER: "others",
}
KINDS = {
    "FetchSnapshot": FETCH,
    "Produce": PRODUCE,
    "Vote": ELECTION,
    "BeginQuorumEpoch": ELECTION,
    "EndQuorumEpoch": ELECTION,
    "BrokerHeartbeat": BROKER,
    "BrokerRegistration": BROKER,
    "AlterPartition": PARTITION,
    "FindCoordinator": GROUP,
    "OffsetCommit": GROUP,
    "OffsetFetch": GROUP,
    "JoinGroup": GROUP,
    "SyncGroup": GROUP,
    "Heartbeat": GROUP,
    "LeaveGroup": GROUP,
    "TxnOffsetCommit": GROUP,
}
ROUTINE = (FETCH, READ, PRODUCE, BROKER, GROUP, OTHER)


class Ribbon(Value, frozen=True):
    first: Passage
    last: Passage
    count: int


class Chosen(Value, frozen=True):
    arrows: tuple[Passage, ...]  # in the order in which they were sent
    ribbons: tuple[Ribbon, ...]
    alone: tuple[bool, ...]  # is this arrow drawn from afar too?
    from_ms: int  # of all earlier ones none is there
    left_out: tuple[tuple[str, int], ...]


def kind_of(passage: Passage, nodes: Sequence[str]) -> str:
    if passage.name == "Fetch":
        return FETCH if passage.source in nodes and passage.target in nodes else READ
    return KINDS.get(passage.name, OTHER)


def choose(
    trace: Trace, nodes: Sequence[str], start_ms: int, end_ms: int, partitions: Sequence[str] = (), limit: int = LIMIT
) -> Chosen:
    within = [p for p in trace.passages if p.sent_ms <= end_ms and max(p.sent_ms, p.arrived_ms) >= start_ms]
    apart = [p for p in within if p.source != p.target]
    named = [p for p in apart if not partitions or not p.partitions or any(one in partitions for one in p.partitions)]
    named.sort(key=lambda p: p.sent_ms)
    arrows = named[-limit:] if limit else []
    from_ms = start_ms if len(arrows) == len(named) else arrows[0].sent_ms if arrows else end_ms
    left_out = (
        ("outside of the time shown", len(trace.passages) - len(within)),
        ("of a machine to itself", len(within) - len(apart)),
        ("about other partitions", len(apart) - len(named)),
        ("too many, the earliest", len(named) - len(arrows)),
    )
    ribbons, alone = ribbons_of(trace, arrows, nodes)
    return Chosen(tuple(arrows), tuple(ribbons), tuple(alone), from_ms, tuple((w, n) for w, n in left_out if n))


def ribbons_of(trace: Trace, arrows: Sequence[Passage], nodes: Sequence[str]) -> tuple[list[Ribbon], list[bool]]:
    turns = turning_points(trace)
    runs: dict[tuple[str, str, str, bool], list[int]] = {}
    done: list[list[int]] = []
    alone = [True] * len(arrows)
    for at, arrow in enumerate(arrows):
        if arrow.arrived_ms < 0 or kind_of(arrow, nodes) not in ROUTINE:
            continue
        key = (arrow.source, arrow.target, arrow.name, arrow.is_answer)
        run = runs.get(key)
        if run is None or is_broken(arrows[run[-1]], arrow, turns):
            runs[key] = run = []
            done.append(run)
        run.append(at)
    ribbons = []
    for run in done:
        if len(run) > ALONE:
            if not arrows[run[0]].is_answer:
                ribbons.append(Ribbon(arrows[run[0]], arrows[run[-1]], len(run)))
            for at in run:
                alone[at] = False
    return ribbons, alone


def turning_points(trace: Trace) -> dict[str, list[int]]:
    """When a machine's life changed: what went before and what came after are not the same any more."""
    turns: dict[str, list[int]] = {}
    for m in trace.moments:
        if m.machine and m.kind not in (Kind.HIGH_WATERMARK, Kind.REPORT, Kind.CLIENT):
            turns.setdefault(m.machine, []).append(m.at_ms)
    return turns


def is_broken(before: Passage, after: Passage, turns: dict[str, list[int]]) -> bool:
    if after.sent_ms - before.sent_ms > GAP_MS:
        return True
    return any(
        bisect_right(turns.get(one, ()), before.sent_ms) < bisect_right(turns.get(one, ()), after.sent_ms)
        for one in (before.source, before.target)
    )
