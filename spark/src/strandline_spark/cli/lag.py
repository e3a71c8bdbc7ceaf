"""`strandline pipeline lag`: who is behind, by how much, and whether that grows. Only reports need Spark."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from msgspec import to_builtins
from rich.console import Console
from rich.live import Live

from strandline.cli.connect import DEFAULT_BOOTSTRAP, Bootstrap, CommandConfig, Json, fail, misuse
from strandline_spark.cli.options import (
    DISK_ADVICE,
    Conf,
    Master,
    Options,
    kafka_options,
    of_disk,
    require_folder_of,
    require_spark,
    setting,
    spark_session,
    write_report,
)
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.lag.samples import GROUP, QUERY, TOPIC, Sample, append
from strandline_spark.jobs.lag.table import line_of, rows_of, summary_line, table_of
from strandline_spark.jobs.lag.watching import KEPT_MAX, Kept, watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from strandline_spark.jobs.lag.sampling import Sampler

Names = Annotated[Sequence[str], Parameter(negative="", show_default=False)]
CATCH_UP = "look whether it runs: `strandline explain --group GROUP` says why a group makes no progress"
BEHIND = 2
HASTE = {"kafka.request.timeout.ms": "5000"}  # a broker that hangs is not waited for half a minute in each sample


def lag(
    *,
    group: Names = (),
    query: Names = (),
    topic: Names = (),
    every: float = 1.0,
    for_: Annotated[float | None, Parameter(name="--for")] = None,
    once: Annotated[bool, Parameter(negative="")] = False,
    file: Path | None = None,
    from_: Annotated[Sequence[str], Parameter(name="--from", negative="", show_default=False)] = (),
    html: Path | None = None,
    commit_to: str | None = None,
    max_lag: int | None = None,
    read_committed: Annotated[bool, Parameter(negative="")] = False,
    option: Options = (),
    command_config: CommandConfig = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    master: Master = None,
    conf: Conf = (),
    json_output: Json = False,
) -> None:
    """Watch lag, throughput, delay and skew of consumer groups and streaming queries, until Ctrl-C or for a given time.

    Lag is the number of records between a reader's position and the end of what it can read. Delay is the age of the
    next record to read, by its timestamp. Without --group, --query and --topic, all groups are watched.

    Exit status: 0 if fine; 1 on an error; 2 if a reader's lag is above --max-lag at the end.

    Parameters
    ----------
    group
        a consumer group; repeatable
    query
        a streaming query's checkpoint folder, or NAME=FOLDER; it may be running; repeatable
    topic
        a topic to watch even without readers; repeatable
    every
        seconds between two samples
    for_
        seconds to watch; default: until Ctrl-C
    once
        take one sample and end
    file
        append the samples to this file, as JSON lines
    from_
        report on this file of samples instead of a cluster; JSON lines, or Parquet if its name ends in .parquet;
        repeatable
    html
        at the end, write a page with plots to this file
    commit_to
        with each sample, commit the positions of the --query to this consumer group, so that other tools see them
    max_lag
        exit with status 2 if a reader is more than this number of records behind at the end
    read_committed
        measure lag up to the last stable offset, as consumers with that isolation level do, not to the high watermark
    """
    if from_ and (group or query or topic or file or commit_to or once):
        misuse("--from reads files", "give no other options with it than --html, --json and --max-lag")
    if every <= 0 or (for_ is not None and for_ < 0):
        misuse("--every must be more than 0 seconds, and --for at least 0")
    if commit_to is not None and len(query) != 1:
        misuse("--commit-to needs exactly one --query", "name the query whose offsets are committed")
    require_folder_of(html, "--html")
    if from_:
        with spark_session(master, conf, "lag") as spark:
            last = report_files(spark, from_, html, json_output, with_last=max_lag is not None)
        judge(last, max_lag)
        return
    if html is not None:
        require_spark()  # not after an hour of watching
    options = kafka_options(bootstrap, option, command_config)
    with sampling(options, group, query, topic, read_committed, commit_to) as sampler:
        watched = Watched(Kept(KEPT_MAX if html is not None else 0))
        run(sampler, watched, every, 0.0 if once else for_, file, json_output)
    if html is not None:
        with spark_session(master, conf, "lag") as spark:
            report_kept(spark, watched, html)
    if watched.lacking and not watched.found:
        fail("no sample could be taken", "correct the errors above, and try again")
    last = [to_builtins(sample) for sample in watched.last]
    judge(last, max_lag)
    if max_lag is not None:
        require_whole(watched.lacking)
        require_positions(last, [(GROUP, name) for name in group] + [(QUERY, name) for name in named_queries(query)])


class Watched:
    """What a watch leaves: the last samples, what they lack, and those of the whole time."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        self.last: Sequence[Sample] = ()
        self.lacking: Sequence[str] = ()  # a sentence each
        self.found = False  # any sample

    def add(self, samples: Sequence[Sample], lacking: Sequence[str]) -> None:
        self.last, self.lacking = samples, lacking
        self.found = self.found or bool(samples)
        self.kept.add(samples)


def report_kept(spark: "SparkSession", watched: Watched, html: Path) -> None:
    from strandline_spark.jobs.lag.frames import frame_of

    report(spark, frame_of(spark, watched.kept.all()), html, json_output=False, quiet=True)


@contextmanager
def sampling(
    options: dict[str, str],
    groups: Sequence[str],
    queries: Sequence[str],
    topics: Sequence[str],
    read_committed: bool,
    commit_to: str | None,
) -> "Iterator[Sampler]":
    """Whatever fails in the block ends the command with a sentence."""
    from strandline.client.cluster import Cluster
    from strandline.client.config import ClientConfig
    from strandline_spark.jobs.lag.sampling import Sampler

    named = named_queries(queries)
    try:
        with Cluster(ClientConfig.of({**HASTE, **options})) as cluster:
            yield Sampler(
                cluster,
                groups=None if not (groups or queries or topics) else groups,
                queries=named,
                topics=topics,
                isolation=int(read_committed),
                commit_to=commit_to,
                notify=lambda sentence: print(sentence, file=sys.stderr),
            )
    except StrandlineError as error:
        fail(error.problem, error.advice)
    except BrokenPipeError:
        raise  # whoever read our output is gone; no disk is to blame
    except OSError as error:
        fail(of_disk(error), DISK_ADVICE)


def named_queries(entries: Sequence[str]) -> dict[str, str]:
    """Name -> checkpoint. Without a name it is the folder's; where two would have the same, the whole path."""
    found: dict[str, str] = {}
    folders = [entry for entry in entries if not is_named(entry)]
    names = [Path(folder).name for folder in folders]
    for entry in entries:
        name, folder = setting(entry, "--query") if is_named(entry) else (Path(entry).name, entry)
        if not is_named(entry) and names.count(name) > 1:
            name = entry
        if found.setdefault(name, folder) != folder:
            fail(f"two checkpoints have the name {name}", "name them with --query NAME=FOLDER", status=2)
    return found


def is_named(entry: str) -> bool:
    """NAME=FOLDER; a folder may have = in it as well, behind a slash."""
    name, equals, _ = entry.partition("=")
    return bool(equals) and "/" not in name


def run(
    sampler: "Sampler",
    watched: Watched,
    every: float,
    for_s: float | None,
    file: Path | None,
    json_output: bool,
) -> None:
    """Watch, show and keep."""
    console = Console()
    live = Live(console=console, auto_refresh=False) if console.is_terminal and not json_output else None
    before: Sequence[Sample] = ()
    written = 0

    def failed(error: StrandlineError) -> None:
        watched.lacking = [f"no sample: {error.problem}"]
        print(watched.lacking[0], file=sys.stderr)

    try:
        if live is not None:
            live.start()
        for samples in watch(sampler.sample, every_s=every, for_s=for_s, failed=failed):
            watched.add(samples, list(sampler.lacking.values()))
            if file is not None:
                written += wrote(file, samples, must=written == 0)
            show(before, samples, live, json_output, is_whole=not sampler.lacking)
            before = samples
    except KeyboardInterrupt:
        pass
    finally:
        if live is not None:
            live.stop()


def wrote(file: Path, samples: Sequence[Sample], *, must: bool) -> bool:
    """A disk that is full in the night ends no watch: the next samples may find room."""
    try:
        append(file, samples)
    except OSError as error:
        if must:
            raise
        print(f"samples are not written: {of_disk(error)}", file=sys.stderr)
        return False
    return True


def show(
    before: Sequence[Sample], samples: Sequence[Sample], live: Live | None, json_output: bool, *, is_whole: bool
) -> None:
    if json_output:
        print(json.dumps([to_builtins(sample) for sample in samples]), flush=True)
        return
    if not samples and not is_whole:
        return  # what is missing was reported
    if not samples:
        print("no group has committed offsets, and no --topic is given", file=sys.stderr)
        return
    rows, time_ms = rows_of(before, samples), samples[0].time_ms
    if live is not None:
        live.update(table_of(rows, time_ms), refresh=True)
    else:
        print("\n".join(line_of(row, time_ms) for row in rows), flush=True)


def report(spark: "SparkSession", samples: Any, html: Path | None, json_output: bool, *, quiet: bool = False) -> None:
    """The summary, as a table or JSON, and the page."""
    from strandline_spark.jobs.lag.job import lag as job
    from strandline_spark.jobs.lag.page import lag_page
    from strandline_spark.jobs.lag.transforms import thinned
    from strandline_spark.persisted import persisted

    with persisted(samples):
        tables = job(samples)
        summary = [row.asDict() for row in tables["summary"].collect()]
        if json_output:
            skew = [row.asDict() for row in tables["skew"].collect()]
            print(json.dumps({"summary": summary, "skew": skew}, default=str))
        elif not quiet:
            for row in summary:
                print(summary_line(row))
        if html is not None:
            write_report(html, lag_page(job(thinned(samples))))


def report_files(
    spark: "SparkSession", files: Sequence[str], html: Path | None, json_output: bool, *, with_last: bool
) -> list[dict[str, Any]]:
    """Report on files of samples. Returns their last samples, if wanted."""
    from strandline_spark.jobs.lag.frames import read_samples

    samples = read_samples(spark, *files)
    report(spark, samples, html, json_output)
    return last_rows(samples) if with_last else []


def last_rows(samples: Any) -> list[dict[str, Any]]:
    from strandline_spark.jobs.lag.transforms import last_of

    return [row.asDict() for row in last_of(samples).collect()]


def require_positions(rows: Sequence[dict[str, Any]], wanted: Sequence[tuple[str, str]]) -> None:
    """Ends the command where somebody who was asked for by name is nowhere: that is not the same as not behind."""
    known = [(row["kind"], row["reader"]) for row in rows if row.get("position") is not None]
    for kind, name in wanted:
        if (kind, name) not in known:
            fail(f"{kind} {name} has not committed any offset, so its lag is unknown", "check the name")


def require_whole(lacking: Sequence[str]) -> None:
    """Ends the command where the end of the watch was not seen, or not all of it."""
    if lacking:
        fail(lacking[0], "the lag at the end is unknown: correct this, and try again")


def judge(rows: Sequence[dict[str, Any]], max_lag: int | None) -> None:
    """Ends the command with status 2 if somebody is too far behind, and with 1 if that is unknown for one. `rows`:
    the last samples. Lags of one reader and topic are added up."""
    if max_lag is None:
        return
    lags: dict[tuple[str, str, str], int] = {}
    for row in rows:
        if row["kind"] != TOPIC:
            key = (row["kind"], row["reader"], row["topic"])
            lags[key] = lags.get(key, 0) + (row.get("lag") or 0)
    behind = {key: value for key, value in lags.items() if value > max_lag}
    if behind:
        (kind, reader, topic), value = max(behind.items(), key=lambda item: item[1])
        fail(f"{kind} {reader} is {value:,} records behind in topic '{topic}': more than {max_lag:,}", CATCH_UP, BEHIND)
    for row in rows:
        if row["kind"] != TOPIC and row.get("position") is None and row["end_offset"] > row["log_start_offset"]:
            where = f"{row['topic']}-{row['partition']}"
            fail(
                f"{row['kind']} {row['reader']} has not committed an offset for {where}, which has records, so its"
                " lag is unknown",
                "check that it reads all of the topic's partitions",
            )
