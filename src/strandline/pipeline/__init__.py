"""Topics and replicas in Spark, and the jobs made of them: `from strandline.pipeline import session`.

Every job is a function that takes DataFrames and returns DataFrames. Names are imported when they are first used.

Jobs are called as the packages with their parts are (`emit` is a function here, and `strandline.pipeline.emit.plan` a
module): whoever asks this package for such a name gets the function, whatever was imported before.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

FACES = {
    "session": "strandline.pipeline.session",
    "PipelineError": "strandline.pipeline.errors",
    "ingest": "strandline.pipeline.jobs.ingest",
    "ingesting": "strandline.pipeline.jobs.ingest",
    "good_and_bad": "strandline.pipeline.jobs.ingest",
    "emit": "strandline.pipeline.jobs.emit",
    "lag": "strandline.pipeline.jobs.lag",
    "LagListener": "strandline.pipeline.lag.listener",
    "read_samples": "strandline.pipeline.lag.frames",
    "open_table": "strandline.pipeline.tables",
    "read_table": "strandline.pipeline.tables",
}


class Faces(ModuleType):
    def __getattribute__(self, name: str) -> Any:
        if name in FACES:
            return getattr(import_module(FACES[name]), name)
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"strandline.pipeline has no {name!r}: it has {', '.join(sorted(FACES))}")

    def __dir__(self) -> list[str]:
        return sorted(FACES)


sys.modules[__name__].__class__ = Faces
