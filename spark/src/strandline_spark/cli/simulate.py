"""`strandline pipeline simulate`: seeds of the simulator, many of them, on one machine or on many."""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from strandline.cli.connect import Json, fail, misuse
from strandline_spark.cli.options import Conf, Master, require_folder_of, spark_session, write_report
from strandline_spark.errors import StrandlineError

if TYPE_CHECKING:
    from strandline_spark.jobs.simulate.definition import Campaign
    from strandline_spark.jobs.simulate.engine import Engine
    from strandline_spark.jobs.simulate.summary import Summary

LISTED_MAX = 50  # failed seeds that are listed one by one


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
    """Run a campaign of simulated clusters. You can stop it at any time; the same command continues it.

    Exit status: 0 if all seeds are ok; 1 if the campaign could not run; 2 if seeds failed; 3 if it was interrupted.

    Parameters
    ----------
    seeds
        FIRST..LAST, such as 1..1000
    out
        the folder of the campaign, which all machines must share; default: one for each version of the code. Finished
        blocks of seeds in it are not run again
    engine
        spark: Spark tasks, where --master says; local: processes on this machine, without Spark
    jobs
        the number of processes, with --engine local
    block
        seeds in a block: a task runs one block, and loses it if it is killed
    limit
        seconds after which a seed counts as failed
    again
        the percentage of seeds that run a second time, with other hash values, and must have the same result
    eligible
        only seeds with Eligible Leader Replicas and with survivable faults (gentle), or with any faults (ruthless)
    prepare
        MODULE:NAME: every process first calls the module's install(NAME), as `python -m tests.planted` does to plant a
        bug in the code
    html
        write the summary to this file, as a page with plots
    """
    require_folder_of(html, "--html")
    campaign = campaign_of(limit, again, eligible, prepare)
    wanted = seeds_of(seeds)
    if block < 1:
        misuse(f"--block must be at least 1, not {block}")
    folder = out or Path(f"campaign-{campaign.code_version}")
    try:
        import pyarrow  # noqa: F401  # only whether it is there
    except ImportError:
        fail("a campaign stores its rows as Parquet, which needs pyarrow", "pip install 'strandline[spark]'")
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
        shown = {**msgspec.to_builtins(summary), "failed": summary.failed, "folder": str(folder)}
        sys.stdout.buffer.write(msgspec.json.encode(shown) + b"\n")
    else:
        print_summary(summary, folder, time.monotonic() - began)
    sys.exit(summary.status)


def campaign_of(limit: float, again: float, eligible: Literal["gentle", "ruthless"] | None, prepare: str) -> "Campaign":
    from strandline_spark.jobs.simulate.code import code_version, python_version
    from strandline_spark.jobs.simulate.definition import SAMPLE_OF, Campaign

    if prepare and not all(prepare.partition(":")):
        misuse(f"--prepare must be MODULE:NAME, not {prepare!r}")
    if not 0 <= again <= 100:
        misuse(f"--again must be a percentage from 0 to 100, not {again:g}")
    if limit <= 0:
        misuse(f"--limit must be more than 0 seconds, not {limit:g}")
    return Campaign(code_version(), python_version(), eligible, prepare, limit, round(again * SAMPLE_OF / 100))


def seeds_of(text: str) -> range:
    first, dots, last = text.partition("..")
    if not (first.isdigit() and (not dots or last.isdigit())) or (dots and int(last) < int(first)):
        misuse(f"--seeds must be FIRST..LAST, such as 1..1000, not {text!r}")
    return range(int(first), int(last if dots else first) + 1)


def run(campaign: "Campaign", seeds: range, folder: Path, engine: "Engine", block: int) -> "Summary":
    from strandline_spark.jobs.simulate.engine import run_campaign, summary_of
    from strandline_spark.jobs.simulate.watch import watched

    try:
        with watched(folder, seeds):
            return run_campaign(campaign, seeds, folder, engine, block)
    except KeyboardInterrupt:
        so_far = summary_of(folder.resolve(), campaign, seeds)
        print(f"interrupted after {so_far.seeds} seeds; run the same command again to continue", file=sys.stderr)
        return so_far


# --- the printed summary


def print_summary(summary: "Summary", folder: Path, span_s: float) -> None:
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
    print(f"run again: {summary.again} seeds, {same} with the same result")
    print(
        f"seeds {summary.first}..{summary.last}: {summary.ok} ok, {summary.failed} failed"
        f" ({summary.virtual_ms / 1000:.0f} virtual seconds, {summary.events} events; the slowest, seed"
        f" {summary.slowest_seed}, took {summary.slowest_ms / 1000:.1f} s)"
        + ("" if summary.is_complete else "; not all have run")
    )
    print(f"{summary.seeds} rows in {folder}, {span_s:.1f} s")
