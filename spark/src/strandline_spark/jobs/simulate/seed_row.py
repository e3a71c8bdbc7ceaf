"""One seed's row: what came of it, and all that is needed to see it again."""

from typing import Any

from msgspec import structs

from strandline.base.value import Value
from strandline_spark.jobs.simulate.definition import Campaign, Run

OK, FAILED, CRASHED, TIMED_OUT, DIED = "ok", "failed", "crashed", "timed out", "died"
STRUCK = "struck: "  # how the simulator names what a fault's strike counts as
STORY_LINES = 60  # of a failed run that its row keeps: the last ones


class SeedRow(Value, frozen=True):
    """`schemas.SEED` says the same to Spark."""

    seed: int
    run: Run
    verdict: str  # ok; failed: a law was broken; crashed: the simulator broke; timed out; died: its process ended
    check: str = ""  # what was broken
    error: str = ""  # its evidence, and the last lines of the story
    replay: str = ""  # the command that shows it, of what is not ok
    digest: str = ""  # of all effects
    ms: int = 0  # on the wall
    virtual_ms: int = 0
    events: int = 0  # that nodes handled
    operations: int = 0  # of clients
    exceeded: int = 0  # partitions where the faults were more than is promised to survive
    code_version: str = ""
    place: str = ""  # host:process that ran its block
    faults: dict[str, int] = {}  # noqa: RUF012  # a Value copies it; how often each kind struck
    seen: dict[str, int] = {}  # noqa: RUF012  # a Value copies it; how often what else happened

    @property
    def is_ok(self) -> bool:
        return self.verdict == OK


def row_of(outcome: Any, run: Run, ms: int, campaign: Campaign, place: str) -> SeedRow:
    """The row of a run that ended (`sim.runs.run.RunResult`; no import of the simulator here)."""
    is_crash = outcome.check.startswith("the simulator crashed")
    error = "\n".join([outcome.evidence, *outcome.story[-STORY_LINES:]]).strip()
    return SeedRow(
        seed=outcome.seed,
        run=run,
        verdict=OK if outcome.is_ok else CRASHED if is_crash else FAILED,
        check=outcome.check,
        error="" if outcome.is_ok else error,
        replay="" if outcome.is_ok else replay(outcome.seed, campaign),
        digest=outcome.digest,
        ms=ms,
        virtual_ms=outcome.virtual_ms,
        events=outcome.events,
        operations=outcome.operations,
        exceeded=outcome.exceeded,
        code_version=campaign.code_version,
        place=place,
        faults={kind[len(STRUCK) :]: count for kind, count in outcome.seen.items() if kind.startswith(STRUCK)},
        seen={kind: count for kind, count in outcome.seen.items() if not kind.startswith(STRUCK)},
    )


def broken_off(seed: int, run: Run, verdict: str, check: str, ms: int, campaign: Campaign, place: str) -> SeedRow:
    """The row of a run that did not end."""
    return SeedRow(
        seed=seed,
        run=run,
        verdict=verdict,
        check=check,
        replay=replay(seed, campaign),
        ms=ms,
        code_version=campaign.code_version,
        place=place,
    )


def replay(seed: int, campaign: Campaign) -> str:
    module, _, name = campaign.prepare.partition(":")
    return f"python -m {module} {name} --seed {seed}" if module else f"strandline sim --seed {seed}"


def replay_twice(seed: int) -> str:
    return f"strandline sim --seeds {seed}..{seed} --twice"


def did_the_same(one: SeedRow, other: SeedRow) -> bool:
    """Two runs of one seed: all but where it was and how long it took. One that was broken off proves nothing."""
    if not {one.verdict, other.verdict}.isdisjoint((TIMED_OUT, DIED)):
        return True
    same = {"run": one.run, "ms": one.ms, "place": one.place}
    return one == structs.replace(other, **same)
