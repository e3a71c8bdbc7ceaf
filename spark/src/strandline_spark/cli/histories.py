"""`strandline pipeline histories`: what clients did and saw, judged key by key."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from strandline.cli.connect import Json
from strandline_spark.cli.options import Conf, Master, require_folder_of, spark_session, write_report
from strandline_spark.progress import progress

if TYPE_CHECKING:
    from strandline_spark.jobs.histories.job import Summary

EVIDENCE_MAX = 8  # operations that are shown of each anomaly


def histories(
    *paths: Annotated[str, Parameter(required=True)],
    out: Path | None = None,
    html: Path | None = None,
    master: Master = None,
    conf: Conf = (),
    json_output: Json = False,
) -> None:
    """Find the anomalies (Jepsen's names) in recorded histories of any size, as `strandline sim --history` writes them.

    Exit status: 0 if there are only tolerated ones; 1 on an error; 2 if there are others; 3 if there are none, but
    something could not be read.

    Parameters
    ----------
    paths
        files or folders: JSON lines (also .gz), or Parquet (docs/histories.md)
    out
        write all findings with their evidence to this new folder, as Parquet
    html
        write the summary to this file, as a page
    """
    require_folder_of(html, "--html")
    with spark_session(master, conf, "histories") as spark:
        from strandline_spark.jobs.histories.job import history_lines, judged_histories, kept, summary

        with progress(spark, "judging"), kept(spark, judged_histories(history_lines(spark, paths)), out) as rows:
            found = summary(rows)
    if html is not None:
        from strandline_spark.jobs.histories.report import histories_page

        write_report(html, histories_page(found))
    if json_output:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
    else:
        print_summary(found, out)
    sys.exit(found.status)


def print_summary(found: "Summary", out: Path | None) -> None:
    for row in found.first:
        print(anomaly(row))
    total = sum(found.violations.values())
    if total > len(found.first):
        print(f"and {total - len(found.first)} more{'' if out else ': --out writes all of them'}")
    for row in found.problems:
        print(f"not judged: {where(row)}{row['problem']}")
    for reason, names in found.tolerated.items():
        counted = ", ".join(f"{count} {name}" for name, count in names.items())
        print(f"tolerated: {counted}: {reason}")
    print(
        f"{found.keys} keys of {found.runs} runs, {found.operations} operations, {found.writes} writes,"
        f" {found.reads} reads: "
        + (", ".join(f"{count} {name}" for name, count in found.violations.items()) or "no anomaly")
        + (f"; {found.bad_lines} lines could not be judged" if found.bad_lines else "")
    )
    if out:
        print(f"findings: {out}")


def anomaly(row: dict[str, Any]) -> str:
    """As `history.anomaly.described` has it."""
    lines = [f"{row['name']} in {where(row)}{row['text']}"]
    for what in ("writers", "readers"):
        verb = "written by" if what == "writers" else "read by"
        lines += [f"  {verb} {shown}" for shown in row[what][:EVIDENCE_MAX]]
    return "\n".join(lines)


def where(row: dict[str, Any]) -> str:
    key = f"{row['topic']}-{row['partition']}" if row["topic"] else ""
    run = f" ({row['run']})" if row["run"] else ""
    return f"{key}{run}: " if key or run else ""
