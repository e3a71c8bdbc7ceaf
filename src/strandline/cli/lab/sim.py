"""`strandline sim`: whole clusters in one thread on virtual time, broken in every way, and judged."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from strandline.cli.connect import Json, fail, misuse
from strandline.history.operation import Operation
from strandline.history.recorded import write_lines
from strandline.sim.diagram import write_page
from strandline.sim.runs.alone import chosen as as_chosen
from strandline.sim.runs.calm import Material
from strandline.sim.runs.campaign import outcomes
from strandline.sim.runs.plan import Plan, draw_plan, read_plan, write_plan
from strandline.sim.runs.run import RunResult, run_plan
from strandline.sim.runs.shrink import Shrinker
from strandline.sim.runs.story import story
from strandline.sim.world.trace import Trace

LISTED_MAX = 50  # failed seeds that are listed one by one
WIDE, BAR_WIDTH = 90, 40  # on a narrower terminal the bar takes what the words leave


def sim(
    *,
    seed: int | None = None,
    seeds: str = "",
    eligible: Literal["gentle", "ruthless"] | None = None,
    workload: Literal["transactions", "copying", "zombies", "two-phase", "exchange", "rebalancing"] | None = None,
    secured: Literal["authorizer", "intruder", "both"] | None = None,
    plan: Path | None = None,
    jobs: int = os.cpu_count() or 1,
    twice: Annotated[bool, Parameter(negative="")] = False,
    shrink: Annotated[bool, Parameter(negative="")] = False,
    shrink_runs: int = 150,
    trace: Annotated[bool, Parameter(negative="")] = False,
    history: Path | None = None,
    out: Path = Path(),
    json_output: Json = False,
) -> None:
    """Run simulated clusters under faults. Everything follows from the seed. Exit status 1 if a law was broken.

    Parameters
    ----------
    seed
        run this seed, and print its story if it fails
    seeds
        run many seeds, FIRST..LAST, in several processes
    eligible
        with --seeds: only seeds with Eligible Leader Replicas; gentle: with faults that lose nothing (at most
        min ISR - 1 lossy shutdowns at a time), ruthless: with more, where all losses must be in the loss ledger
    workload
        with --seed or --seeds: clients do only this work, with the faults that the seed draws; rebalancing: groups of
        both protocols; the others: transactions
    secured
        with --seed or --seeds: authorizer: ACLs permit what clients do, and change all the time; intruder: a client
        that does not know the cluster's secret sends what only nodes may send; or both
    plan
        run the plan that an earlier failure wrote
    jobs
        number of processes, with --seeds
    twice
        with --seeds: run each seed in two processes with different hash seeds, and compare them
    shrink
        make a failing run smaller before printing its story
    shrink_runs
        largest number of runs for that
    trace
        draw the diagram even if nothing failed
    history
        with --seed or --plan: write what clients did to this file, for `strandline pipeline histories`
    out
        folder for stories, diagrams and plans of failing runs
    """
    if sum((seed is not None, bool(seeds), plan is not None)) > 1:
        misuse("more than one of --seed, --seeds and --plan is named", "name one of them")
    if history is not None and seeds:
        misuse("--history is for one run", "use it with --seed or --plan")
    if seeds:
        wanted = [seed for seed in parse_seeds(seeds) if eligible is None or is_eligible(seed, eligible)]
        if not wanted:
            misuse(f"none of the seeds {seeds} is {eligible}, with Eligible Leader Replicas", "name more seeds")
        sys.exit(campaign(wanted, jobs, workload or "", secured or "", twice=twice, json_output=json_output))
    chosen = read(plan) if plan is not None else draw_plan(seed if seed is not None else 1)
    replay = (
        f"strandline sim --plan {plan}" if plan is not None else command(chosen.seed, workload or "", secured or "")
    )
    chosen = as_chosen(chosen, workload or "", secured or "")
    most = shrink_runs if shrink else 0
    sys.exit(one(chosen, replay, out, shrink_runs=most, draws=trace, json_output=json_output, history=history))


def command(seed: int, workload: str, secured: str) -> str:
    more = (f" --workload {workload}" if workload else "") + (f" --secured {secured}" if secured else "")
    return f"strandline sim --seed {seed}{more}"


def read(path: Path) -> Plan:
    try:
        return read_plan(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        misuse(
            f"{path} is not a plan: {error}",
            "`strandline sim --seed N --out FOLDER` writes the plan of a seed that fails",
        )


def parse_seeds(text: str) -> range:
    first, dots, last = text.partition("..")
    if not (first.isdigit() and (not dots or last.isdigit())) or (dots and int(last) < int(first)):
        misuse(f"--seeds needs FIRST..LAST, not {text!r}", "for example 1..1000")
    return range(int(first), int(last if dots else first) + 1)


# --- one


def one(
    plan: Plan,
    replay: str,
    out: Path,
    *,
    shrink_runs: int,
    draws: bool,
    json_output: bool,
    history: Path | None = None,
) -> int:
    kept: list[tuple[Sequence[Operation], Material]] = []  # of the last run

    def keep(operations: Sequence[Operation], material: Material) -> None:
        kept[:] = [(operations, material)]

    outcome = run_plan(plan, keep=keep)
    console = Console(stderr=True)
    if not outcome.is_ok or draws:
        if shrink_runs and not outcome.is_ok:
            plan, outcome = shrunk(plan, outcome, shrink_runs, console)
        seen = Trace()
        again = run_plan(plan, seen, keep)
        assert again.digest == outcome.digest, "the same plan ran differently"
        replay = write_run(plan, outcome, seen, replay, out, is_shrunk=shrink_runs > 0, quiet=json_output)
    if history is not None:
        write_history(history, f"sim seed {plan.seed}", *kept[0])
    if json_output:
        sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
    else:
        print(verdict(outcome))
    return 0 if outcome.is_ok else 1


def write_history(path: Path, run: str, operations: Sequence[Operation], material: Material) -> None:
    lines = write_lines(operations, material.facts, material.trimmed, material.finals, run)
    try:
        path.write_bytes(b"".join(lines))
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}", "name another file with --history")
    if not material.finals:
        print(
            "the run stopped before all records were read: records that were not read count as unseen",
            file=sys.stderr,
        )


def verdict(outcome: RunResult) -> str:
    what = "ok" if outcome.is_ok else f"VIOLATION: {outcome.check.splitlines()[0]}"
    return f"seed {outcome.seed}: {what}, digest {outcome.digest}"


def shrunk(plan: Plan, outcome: RunResult, runs: int, console: Console) -> tuple[Plan, RunResult]:
    with console.status("shrinking") as status:

        def progress(smaller: Plan, left: int) -> None:
            status.update(f"shrinking: {len(smaller.faults)} of {len(plan.faults)} faults, {left} runs left")

        return Shrinker(run_plan, plan, outcome, runs_max=runs, progress=progress).shrink()


def write_run(
    plan: Plan, outcome: RunResult, seen: Trace, replay: str, out: Path, *, is_shrunk: bool, quiet: bool
) -> str:
    """Write plan, story and diagram; print the story. How to replay what they show."""
    out.mkdir(parents=True, exist_ok=True)
    stem = out / f"sim-{plan.seed}"
    if is_shrunk and not outcome.is_ok:
        path = stem.with_suffix(".plan.json")
        path.write_bytes(write_plan(plan))
        replay = f"strandline sim --plan {path}"
    title = f"seed {plan.seed}: {'ok' if outcome.is_ok else 'a law was broken'}"
    text = f"{outcome.check}\n{outcome.evidence}".strip() or "nothing failed"
    partitions = tuple(sorted({m.partition for m in seen.moments if m.partition and m.partition in outcome.check}))
    text_of_story = story(seen, title=title, verdict_text=text, replay=replay, partitions=partitions)
    stem.with_suffix(".txt").write_text(text_of_story)
    write_page(
        str(stem.with_suffix(".html")), seen, title=title, verdict_text=text, replay=replay, partitions=partitions
    )
    if not quiet:
        print(text_of_story)
        print(f"\nstory: {stem.with_suffix('.txt')}   diagram: {stem.with_suffix('.html')}\nreplay: {replay}")
    return replay


# --- many


def is_eligible(seed: int, how: str) -> bool:
    options = draw_plan(seed).options
    return options.elr and options.is_ruthless == (how == "ruthless")


def campaign(
    seeds: Sequence[int], jobs: int, workload: str = "", secured: str = "", *, twice: bool, json_output: bool
) -> int:
    failed: list[RunResult] = []
    seen: Counter[str] = Counter()
    virtual_ms = events = 0
    running = outcomes(seeds, jobs, workload=workload, secured=secured, twice=twice)
    for outcome in followed(running, len(seeds), f"seeds {seeds[0]}..{seeds[-1]}", lambda: len(failed)):
        virtual_ms += outcome.virtual_ms
        events += outcome.events
        seen.update(outcome.seen)
        if not outcome.is_ok:
            failed.append(outcome)
        if json_output:
            sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
            sys.stdout.buffer.flush()  # a script sees how far it is
    failed.sort(key=lambda outcome: outcome.seed)
    if not json_output:
        for outcome in failed[:LISTED_MAX]:
            print(f"{verdict(outcome)}\n    {command(outcome.seed, workload, secured)}")
        if len(failed) > LISTED_MAX:
            print(f"and {len(failed) - LISTED_MAX} more")
        print("seen: " + ", ".join(f"{what} {count:,}" for what, count in sorted(seen.items())))
        print(
            f"seeds {seeds[0]}..{seeds[-1]}: {len(seeds) - len(failed)} ok, {len(failed)} failed"
            f" ({virtual_ms / 1000:.0f} virtual seconds, {events} events)"
        )
    return 1 if failed else 0


def followed(found: Iterator[RunResult], total: int, title: str, failures: Callable[[], int]) -> Iterator[RunResult]:
    """The same, with a bar on a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=BAR_WIDTH if console.width >= WIDE else None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=total, failed=0)
        for outcome in found:
            yield outcome
            progress.update(task, advance=1, failed=failures())
