"""What a campaign has come to: verdicts, failures with the commands that show them, and which faults were met.

Rows come one after another, so a summary needs no more memory for more seeds.
"""

from collections import Counter

from strandline.base.value import Value
from strandline_spark.jobs.simulate.definition import AGAIN, Campaign
from strandline_spark.jobs.simulate.seed_row import SeedRow, did_the_same, replay_twice

FAILURES_KEPT = 1000  # listed one by one; the counts include all


class Failure(Value, frozen=True):
    seed: int
    verdict: str
    check: str
    replay: str


class Difference(Value, frozen=True):
    """A seed that did not do the same again, elsewhere."""

    seed: int
    digest: str
    other: str
    replay: str


class Coverage(Value, frozen=True):
    """A kind of fault."""

    kind: str
    drawn: str  # by whom: every seed, seeds with moves, seeds with Eligible Leader Replicas
    seeds: int  # that it struck in
    strikes: int


class Summary(Value, frozen=True):
    campaign: Campaign
    first: int
    last: int
    seeds: int  # that counted and were run
    ok: int
    verdicts: dict[str, int]
    failures: tuple[Failure, ...]
    again: int  # seeds that were run once more
    differences: tuple[Difference, ...]
    coverage: tuple[Coverage, ...]
    seen: dict[str, int]
    virtual_ms: int
    events: int
    ms: int  # of single seeds, added up
    slowest_seed: int
    slowest_ms: int
    is_complete: bool  # nothing of first..last is left to run, or to run again

    @property
    def failed(self) -> int:
        return self.seeds - self.ok

    @property
    def status(self) -> int:
        """For scripts: 0 fine, 2 something failed, 3 nothing failed so far."""
        return 2 if self.failed or self.differences else 0 if self.is_complete else 3


def kinds() -> dict[str, str]:
    """All kinds of faults that seeds draw, and in which seeds."""
    from strandline.sim.faults.table import ELIGIBLE, FAULTS, MOVES

    tables = {"all": FAULTS, "with moves": MOVES, "with ELR": ELIGIBLE}
    return {kind: drawn for drawn, table in tables.items() for kind in table}


class Tally:
    """Adds rows up. Second runs must come before first ones: they are few, and are kept for the comparison."""

    def __init__(self, campaign: Campaign, seeds: range) -> None:
        self.campaign = campaign
        self.seeds = seeds
        self.second: dict[int, SeedRow] = {}
        self.verdicts: Counter[str] = Counter()
        self.failures: list[Failure] = []
        self.differences: list[Difference] = []
        self.again = 0
        self.struck: Counter[str] = Counter()
        self.struck_in: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.virtual_ms = self.events = self.ms = 0
        self.slowest = (0, 0)  # milliseconds, seed

    def take(self, row: SeedRow) -> None:
        if row.seed not in self.seeds:
            return
        if row.run == AGAIN:
            self.second[row.seed] = row
            return
        self.verdicts[row.verdict] += 1
        if not row.is_ok and len(self.failures) < FAILURES_KEPT:
            check = row.check.splitlines()[0] if row.check else ""
            self.failures.append(Failure(row.seed, row.verdict, check, row.replay))
        self.compare(row)
        self.struck.update(row.faults)
        self.struck_in.update(row.faults.keys())
        self.seen.update(row.seen)
        self.virtual_ms += row.virtual_ms
        self.events += row.events
        self.ms += row.ms
        self.slowest = max(self.slowest, (row.ms, row.seed))

    def compare(self, row: SeedRow) -> None:
        second = self.second.pop(row.seed, None)
        if second is None:
            return
        self.again += 1
        if not did_the_same(row, second):
            self.differences.append(Difference(row.seed, row.digest, second.digest, replay_twice(row.seed)))

    def summary(self, *, is_complete: bool) -> Summary:
        known = kinds()
        drawn = {**known, **{kind: "plans" for kind in sorted(self.struck) if kind not in known}}
        return Summary(
            campaign=self.campaign,
            first=self.seeds.start,
            last=self.seeds.stop - 1,
            seeds=sum(self.verdicts.values()),
            ok=self.verdicts["ok"],
            verdicts=dict(sorted(self.verdicts.items())),
            failures=tuple(sorted(self.failures, key=lambda failure: failure.seed)),
            again=self.again,
            differences=tuple(sorted(self.differences, key=lambda difference: difference.seed)),
            coverage=tuple(
                Coverage(kind, group, self.struck_in[kind], self.struck[kind]) for kind, group in drawn.items()
            ),
            seen=dict(sorted(self.seen.items())),
            virtual_ms=self.virtual_ms,
            events=self.events,
            ms=self.ms,
            slowest_seed=self.slowest[1],
            slowest_ms=self.slowest[0],
            is_complete=is_complete,
        )
