"""Campaigns of the simulator."""

from typing import Annotated, TypedDict

from strandline.cli.printed.words import says
from strandline_spark.jobs.simulate.definition import Campaign
from strandline_spark.jobs.simulate.summary import Coverage, Difference, Failure


class Simulated(TypedDict):
    """A campaign: the seeds from `first` to `last` that have run so far."""

    campaign: Campaign
    first: int
    last: int
    seeds: Annotated[int, says("that have run")]
    ok: int
    failed: int
    verdicts: Annotated[dict[str, int], says("seeds: ok, failed, crashed, timed out, died")]
    failures: Annotated[list[Failure], says("at most 1000")]
    again: Annotated[int, says("seeds that were run once more")]
    differences: Annotated[list[Difference], says("seeds that had another result when they ran again")]
    coverage: Annotated[list[Coverage], says("kinds of faults, and how often each struck")]
    seen: Annotated[dict[str, int], says("how often what else happened")]
    virtual_ms: int
    events: int
    ms: Annotated[int, says("of single seeds, added up")]
    slowest_seed: int
    slowest_ms: int
    is_complete: Annotated[bool, says("nothing is left to run, or to run again")]
    folder: str
