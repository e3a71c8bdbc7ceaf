"""`strandline pipeline simulate`: seeds of the simulator, many of them, on one machine or on many."""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from strandline.cli.connect import Json, fail
from strandline_spark.cli.options import Conf, Master, require_folder_of, spark_session, write_report
from strandline_spark.errors import StrandlineError

if TYPE_CHECKING:
    from strandline_spark.jobs.simulate.definition import Campaign
    from strandline_spark.jobs.simulate.engine import Engine
    from strandline_spark.jobs.simulate.summary import Summary

LISTED_MAX = 50  # failed seeds that are told one by one


def simulate(
    *,
    seeds: str,
    out: Path | None = None,
    engine: Literal["spark", "local"] = "spark",
    jobs: int = os.cpu_count() or 1,
    block: int = 20,
    limit: float = 120.0,
    again: float = 1.0,
    eligible: Literal["gentle", "ruthless"] | None = None,
    prepare: str = "",
    html: Path | None = None,
    master: Master = None,
    conf: Conf = (),
    json_output: Json = False,
) -> None:
    """Run a campaign of simulated clusters. It can be stopped at any time and goes on when it is started again.

    Exit status 0: all seeds are ok, 2: some are not, 3: it was interrupted, 1: it could not be run.

    Parameters
    ----------
    seeds
        FIRST..LAST, as 1..1000
    out
        folder of the campaign, which all machines must see; by default one per version of the code. Blocks of seeds
        that are done there are not run again
    engine
        spark: tasks of Spark, wherever --master says. local: processes of this machine, without Spark
    jobs
        processes, with --engine local
    block
        seeds per block: what a task runs, and what is lost if it is killed
    limit
        seconds after which a seed is given up
    again
        how many percent of the seeds are run once more, in a process that hashes differently, and must do the same
    eligible
        only seeds with Eligible Leader Replicas: of those with survivable faults (gentle), or with more (ruthless)
    prepare
        MODULE:NAME: every process first calls the module's install(NAME), as `python -m tests.planted` does to plant a
        bug in the code
    html
        write the summary as a page, with plots
    """
    require_folder_of(html, "--html")
    campaign = campaign_of(limit, again, eligible, prepare)
    wanted = seeds_of(seeds)
    if block < 1:
        fail(f"--block wants at least 1, and got {block}", status=2)
    folder = out or Path(f"campaign-{campaign.code_version}")
    try:
        import pyarrow  # noqa: F401 (only whether it is there)
    except ImportError:
        fail("a campaign's rows are kept as Parquet, which needs pyarrow", "pip install 'strandline[spark]'")
    began = time.monotonic()
    if engine == "local":
        from strandline_spark.jobs.simulate.engine import on_this_machine

        try:
            summary = run(campaign, wanted, folder, on_this_machine(max(1, jobs)), block)
        except StrandlineError as error:
            fail(error.problem, error.advice)
    else:
        with spark_session(master, conf, "simulate") as spark:
            from strandline_spark.jobs.simulate.job import on_spark

            summary = run(campaign, wanted, folder, on_spark(spark), block)
    if html is not None:
        from strandline_spark.jobs.simulate.report import campaign_page

        write_report(html, campaign_page(summary))
    if json_output:
        told = {**msgspec.to_builtins(summary), "failed": summary.failed, "folder": str(folder)}
        sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
    else:
        tell(summary, folder, time.monotonic() - began)
    sys.exit(summary.status)


def campaign_of(limit: float, again: float, eligible: Literal["gentle", "ruthless"] | None, prepare: str) -> "Campaign":
    from strandline_spark.jobs.simulate.code import code_version, python_version
    from strandline_spark.jobs.simulate.definition import SAMPLE_OF, Campaign

    if prepare and not all(prepare.partition(":")):
        fail(f"--prepare wants MODULE:NAME, and got {prepare!r}", status=2)
    if not 0 <= again <= 100:
        fail(f"--again wants percent, from 0 to 100, and got {again:g}", status=2)
    if limit <= 0:
        fail(f"--limit wants seconds, more than 0, and got {limit:g}", status=2)
    return Campaign(code_version(), python_version(), eligible, prepare, limit, round(again * SAMPLE_OF / 100))


def seeds_of(text: str) -> range:
    first, dots, last = text.partition("..")
    if not (first.isdigit() and (not dots or last.isdigit())) or (dots and int(last) < int(first)):
        fail(f"--seeds wants FIRST..LAST, as 1..1000, and got {text!r}", status=2)
    return range(int(first), int(last if dots else first) + 1)


def run(campaign: "Campaign", seeds: range, folder: Path, engine: "Engine", block: int) -> "Summary":
    from strandline_spark.jobs.simulate.engine import run_campaign, summary_of
    from strandline_spark.jobs.simulate.watch import watched

    try:
        with watched(folder, seeds):
            return run_campaign(campaign, seeds, folder, engine, block)
    except KeyboardInterrupt:
        so_far = summary_of(folder.resolve(), campaign, seeds)
        print(f"interrupted after {so_far.seeds} seeds; the same command goes on", file=sys.stderr)
        return so_far


# --- what people are told


def tell(summary: "Summary", folder: Path, span_s: float) -> None:
    for failure in summary.failures[:LISTED_MAX]:
        print(f"seed {failure.seed}: {failure.verdict}: {failure.check}\n    {failure.replay}")
    if summary.failed > LISTED_MAX:
        print(f"and {summary.failed - LISTED_MAX} more")
    for row in summary.differences[:LISTED_MAX]:
        print(f"seed {row.seed}: not deterministic: digest {row.digest}, and again {row.other}\n    {row.replay}")
    print("faults: " + (", ".join(f"{row.kind} {row.strikes:,}" for row in summary.coverage if row.strikes) or "none"))
    unmet = [f"{row.kind} ({row.drawn})" for row in summary.coverage if not row.strikes]
    print("never struck: " + (", ".join(unmet) or "none"))
    print("seen: " + ", ".join(f"{what} {count:,}" for what, count in summary.seen.items()))
    same = summary.again - len(summary.differences)
    print(f"run again: {summary.again} seeds, {same} did the same")
    print(
        f"seeds {summary.first}..{summary.last}: {summary.ok} ok, {summary.failed} failed"
        f" ({summary.virtual_ms / 1000:.0f} virtual seconds, {summary.events} events; the slowest, seed"
        f" {summary.slowest_seed}, took {summary.slowest_ms / 1000:.1f} s)"
        + ("" if summary.is_complete else "; not all are done")
    )
    print(f"{summary.seeds} rows in {folder}, {span_s:.1f} s")
