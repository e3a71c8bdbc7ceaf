"""What all lanes have in a topic, found by reading the headers of each target partition once.

Used twice: a run that goes on where another ended learns from it where each lane stands, and at the end it proves that
each lane's rows are all there, once. A new leader's high watermark may be behind what was acknowledged before; so what
is missing in the proof is looked for again for a while.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline_spark.errors import DataLoss, StrandlineError
from strandline_spark.jobs.emit.lane import Fail, Found, Searched, Track
from strandline_spark.jobs.emit.plan import NEW_CHECKPOINT, Plan, Target, Written
from strandline_spark.jobs.emit.searching import Where, batches_of

THREADS = 4
MISSING_PATIENCE_S = 30.0
MISSING_PAUSE_S = 0.5
Key = tuple[int, int]  # lane, partition
T = TypeVar("T")


def find_written(config: ClientConfig, plan: Plan) -> dict[Key, Written]:
    """What is there of each lane in each partition. Raises DataLoss where rows are missing before others."""
    return {key: written for rows in each_target(config, plan, read_target) for key, written in rows.items()}


def prove_written(config: ClientConfig, plan: Plan, lanes: Sequence[Written]) -> None:
    """Raises DataLoss unless the topic has of each lane what `lanes` says, no more and no less."""
    promised = {(row.lane, row.partition): row for row in lanes}

    def prove(cluster: Cluster, plan: Plan, target: Target) -> None:
        until = time.monotonic() + MISSING_PATIENCE_S
        while missing := why_missing(plan, target, promised, read_target(cluster, plan, target)):
            if time.monotonic() > until:
                raise missing
            time.sleep(MISSING_PAUSE_S)

    for _ in each_target(config, plan, prove):
        pass


def each_target(config: ClientConfig, plan: Plan, work: Callable[[Cluster, Plan, Target], T]) -> Iterator[T]:
    """Some partitions at a time, each with connections of its own."""

    def alone(target: Target) -> T:
        with Cluster(config) as cluster:
            return work(cluster, plan, target)

    with ThreadPoolExecutor(THREADS) as threads:
        yield from threads.map(alone, plan.targets)


def read_target(cluster: Cluster, plan: Plan, target: Target) -> dict[Key, Written]:
    """What a partition has of each lane; lanes with nothing there are left out."""
    lanes = {lane.producer_id: lane.number for lane in plan.lanes}
    tracks: dict[int, Track] = {}
    where = Where(plan.topic, plan.topic_id, target.partition)
    for hit in batches_of(cluster, where, lanes, target.end_offset, target.leader_epoch):
        if not isinstance(hit, Searched):
            number = lanes[hit[0]]
            track = tracks.setdefault(number, new_track(plan, target))
            report(track, hit[1], f"lane {number}, {where}")
    return {
        (number, target.partition): Written(
            number, target.partition, track.written, track.end_offset, track.leader_epoch
        )
        for number, track in tracks.items()
    }


def new_track(plan: Plan, target: Target, known: Written | None = None) -> Track:
    """A track that begins where the plan does, or behind what is known to be written."""
    if known is None:
        end_offset, epoch, rows = target.end_offset, target.leader_epoch, 0
    else:
        end_offset, epoch, rows = known.end_offset, known.leader_epoch, known.rows
    return Track(written=rows, end_offset=end_offset, leader_epoch=epoch, compacted=plan.compacted)


def report(track: Track, found: Found, whose: str) -> None:
    for decision in track.step(found):
        assert isinstance(decision, Fail)
        raise (DataLoss if decision.lost else StrandlineError)(f"{whose}: {decision.problem}", decision.advice)


def why_missing(
    plan: Plan, target: Target, promised: Mapping[Key, Written], found: Mapping[Key, Written]
) -> DataLoss | None:
    """Why is the partition not as promised? None: it is."""
    for lane in plan.lanes:
        key = (lane.number, target.partition)
        want, have = (rows[key].rows if key in rows else 0 for rows in (promised, found))
        if want != have:
            where = f"{plan.topic}-{target.partition}"
            counts = f"{have} rows of lane {lane.number} where {want} were acknowledged"
            return DataLoss(f"{where} has {counts}", f"see `strandline losses`; {NEW_CHECKPOINT}")
    return None
