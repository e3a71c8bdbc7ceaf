"""Topics and replicas in Spark, and the jobs made of them: `from strandline.pipeline import session`.

Every job is a function that takes DataFrames and returns DataFrames. Names are imported when they are first used.
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
    "LagListener": "strandline.pipeline.lag.listener",
    "read_samples": "strandline.pipeline.lag.frames",
    "Campaign": "strandline.pipeline.campaign.definition",
    "code_version": "strandline.pipeline.campaign.code",
    "seed_blocks": "strandline.pipeline.jobs.simulate",
    "seed_rows": "strandline.pipeline.jobs.simulate",
    "history_lines": "strandline.pipeline.jobs.histories",
    "judged_histories": "strandline.pipeline.jobs.histories",
    "open_table": "strandline.pipeline.tables",
    "read_table": "strandline.pipeline.tables",
}


class Face(ModuleType):
    """Some of these names are also those of modules: importing one must not put it in the place of what is meant."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in FACES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


def __getattr__(name: str) -> Any:
    if name not in FACES:
        raise AttributeError(f"strandline.pipeline has no {name!r}: it has {', '.join(sorted(FACES))}")
    return getattr(import_module(FACES[name]), name)


def __dir__() -> list[str]:
    return sorted(FACES)


sys.modules[__name__].__class__ = Face
