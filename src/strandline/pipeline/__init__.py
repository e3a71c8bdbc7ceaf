"""Topics and replicas in Spark, and the jobs made of them: `from strandline.pipeline import session`.

Every job is a function that takes DataFrames and returns DataFrames. Names are imported when they are first used.
"""

from importlib import import_module
from typing import Any

FACES = {
    "session": "strandline.pipeline.session",
    "PipelineError": "strandline.pipeline.errors",
    "ingest": "strandline.pipeline.jobs.ingest",
    "ingesting": "strandline.pipeline.jobs.ingest",
    "good_and_bad": "strandline.pipeline.jobs.ingest",
    "LagListener": "strandline.pipeline.lag.listener",
    "read_samples": "strandline.pipeline.lag.frames",
    "open_table": "strandline.pipeline.tables",
    "read_table": "strandline.pipeline.tables",
}


def __getattr__(name: str) -> Any:
    if name not in FACES:
        raise AttributeError(f"strandline.pipeline has no {name!r}: it has {', '.join(sorted(FACES))}")
    return getattr(import_module(FACES[name]), name)


def __dir__() -> list[str]:
    return sorted(FACES)
