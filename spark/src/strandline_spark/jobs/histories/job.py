"""Recorded histories judged key by key: `judged_histories(history_lines(spark, paths))`, and a summary of that."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline.base.value import Value
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.histories.frames import counts, judged_histories, keys, problems, tolerated, violations
from strandline_spark.persisted import persisted
from strandline_spark.schemas import HISTORY_JUDGED, HISTORY_LINE

LISTED_MAX = 20  # anomalies of one name in one key that are listed, as in a judgement's report
PARQUET = ".parquet"


class Summary(Value, frozen=True):
    runs: int
    keys: int
    operations: int  # as keys see them: one on several keys counts in each
    writes: int
    reads: int
    violations: dict[str, int]  # by name
    tolerated: dict[str, dict[str, int]]  # by reason and name
    first: tuple[dict[str, object], ...]  # violations with their evidence, at most LISTED_MAX
    problems: tuple[dict[str, object], ...]  # what could not be judged, at most LISTED_MAX
    bad_lines: int

    @property
    def status(self) -> int:
        """For scripts: 0 fine, 2 something is wrong, 3 nothing is, in what could be judged."""
        return 2 if self.violations else 3 if self.bad_lines or not self.keys else 0


def history_lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """JSON lines (also compressed: .gz), or Parquet of HISTORY_LINE; folders of either. Raises StrandlineError."""
    are_tables = [is_parquet(path) for path in paths]
    if any(are_tables) and not all(are_tables):
        raise StrandlineError("some histories are JSON lines and others Parquet", "judge them one kind at a time")
    try:
        if all(are_tables):
            return spark.read.schema(HISTORY_LINE).parquet(*paths)
        read = spark.read.option("recursiveFileLookup", "true").text(list(paths))
        return read.select("value", F.col("_metadata.file_name").alias("file"))
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise StrandlineError(f"there is no {', '.join(paths)}", "name files or folders with histories") from None
        raise


@contextmanager
def kept(spark: SparkSession, rows: DataFrame, out: Path | None) -> Iterator[DataFrame]:
    """`rows`, computed once: in memory, or as Parquet in a new folder."""
    if out is None:
        with persisted(rows):
            yield rows
        return
    if out.exists():
        raise StrandlineError(f"{out} already exists", "name a new folder with --out")
    rows.write.parquet(str(out.resolve()))
    yield spark.read.schema(HISTORY_JUDGED).parquet(str(out.resolve()))


def is_parquet(path: str) -> bool:
    folder = Path(path)
    return path.rstrip("/").endswith(PARQUET) or (folder.is_dir() and any(folder.rglob(f"*{PARQUET}")))


def summary(rows: DataFrame) -> Summary:
    """Of rows of HISTORY_JUDGED, which are computed twice: cache them, or read them from a table."""
    is_problem = F.col("problem").isNotNull().alias("is_problem")
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("operations", "writes", "reads", "lines")]
    found = rows.groupBy("name", "tolerated", is_problem).agg(
        F.count(F.lit(1)).alias("rows"), F.countDistinct("run").alias("runs"), *sums
    )
    order = ("run", "topic", "partition", "name", "proved_ms")
    listed = violations(rows).orderBy(*order).limit(LISTED_MAX).unionByName(problems(rows).limit(LISTED_MAX))
    groups = found.orderBy("name", "tolerated").collect()
    shown = [row.asDict() for row in listed.collect()]
    excused: dict[str, dict[str, int]] = {}
    for row in groups:
        if row.tolerated is not None:
            excused.setdefault(row.tolerated, {})[row.name] = row.rows
    about = next((row for row in groups if row.name is None and not row.is_problem), None)
    return Summary(
        runs=about.runs if about else 0,
        keys=about.rows if about else 0,
        operations=about.operations if about else 0,
        writes=about.writes if about else 0,
        reads=about.reads if about else 0,
        violations={row.name: row.rows for row in groups if row.name is not None and row.tolerated is None},
        tolerated=excused,
        first=tuple(row for row in shown if row["problem"] is None),
        problems=tuple(row for row in shown if row["problem"] is not None),
        bad_lines=sum(row.lines for row in groups if row.is_problem),
    )


__all__ = [
    "Summary",
    "counts",
    "history_lines",
    "judged_histories",
    "kept",
    "keys",
    "problems",
    "summary",
    "tolerated",
    "violations",
]
