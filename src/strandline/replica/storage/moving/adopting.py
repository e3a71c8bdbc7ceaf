"""A partition whose log is not found: an empty log is begun, unless a future log was left that has what was lost.

Invariant: a future log takes the place of its current one only where metadata names its directory, since it had all of
the current one when it was reported to the controller. No other is believed.
"""

from strandline.base.effects import Effect, Report
from strandline.base.ids import TopicIdPartition, TopicPartition, Uuid
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.log.directory import directory_name
from strandline.replica.config import LogDir
from strandline.replica.hosting.found_log import FoundLog
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.storage.moving.futures import Futures
from strandline.replica.storage.opening.owners import make_room


def adopted_or_new(
    futures: Futures, at: TopicIdPartition, name: TopicPartition, named: Uuid, now: Instant
) -> tuple[Hosted | None, list[Effect]]:
    """None: its directory has failed."""
    host, hosted = futures.host, None
    effects: list[Effect] = []
    futures.drop(at)  # of a log that was another topic's
    if at in host.absent:
        return None, effects
    for log_dir, entry in futures.storage.loading.futures.pop(at, ()):
        if log_dir.directory_id != named or hosted is not None or not host.directories.is_live(log_dir):
            effects += futures.delete(at, log_dir, entry)
            continue
        try:
            hosted = adopt(futures, at, name, log_dir, entry, now)
        except DiskError as error:
            host.fail(log_dir, error)
            host.absent[at] = named
            return None, effects
        effects.append(Report("warning", f"{log_dir.path}/{entry} is {name} now: what it was a copy of is gone"))
    return hosted or futures.storage.create(at, name, named, now), effects


def adopt(
    futures: Futures, at: TopicIdPartition, name: TopicPartition, log_dir: LogDir, entry: str, now: Instant
) -> Hosted:
    assert futures.host.partitions.find(at) is None, name
    storage = futures.storage
    path = f"{log_dir.path}/{directory_name(name)}"
    make_room(storage.disk, path)
    storage.disk.rename(f"{log_dir.path}/{entry}", path)
    # It is not known whether the one before was ever cleaned: batches may have gaps between them, whatever the topic's
    # policy is by now. Segments have none: a copy's begin where those before them end.
    hosted = storage.loading.open(at, FoundLog(log_dir, name, 0, 0, 0, 0, clean=False), now)
    storage.findings.end(log_dir)
    storage.checkpoints.gaps_may_come()
    storage.reconfigure(hosted)
    return hosted
