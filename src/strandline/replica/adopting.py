"""A partition whose log is not found: an empty log is begun, unless a future log was left that has what was lost.

Invariant: a future log takes the place of its current one only where metadata names its directory, since it had all of
the current one when the controller was told of it. No other is believed.
"""

from strandline.base.effects import Effect, Report
from strandline.base.ids import TopicIdPartition, TopicPartition, Uuid
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.log.directory import directory_name
from strandline.replica.config import LogDir
from strandline.replica.future import Futures
from strandline.replica.hosted import Hosted
from strandline.replica.owners import make_room
from strandline.replica.storage import Double

ANY_OFFSET = 1 << 62


def adopted_or_new(
    futures: Futures, at: TopicIdPartition, name: TopicPartition, named: Uuid, effects: list[Effect], now: Instant
) -> Hosted | None:
    """None: its directory has failed."""
    host, hosted = futures.host, None
    if at in host.absent:
        return None
    for log_dir, entry in futures.storage.found_futures.pop(at, ()):
        if log_dir.directory_id != named or hosted is not None or not host.directories.is_live(log_dir):
            effects += futures.bury(at, log_dir, entry)
            continue
        try:
            hosted = adopt(futures, at, name, log_dir, entry, now)
        except DiskError as error:
            host.fail(log_dir, error)
            host.absent[at] = named
            return None
        effects.append(Report("warning", f"{log_dir.path}/{entry} is {name} now: what it was a copy of is gone"))
    return hosted or futures.storage.create(at, name, named, now)


def adopt(
    futures: Futures, at: TopicIdPartition, name: TopicPartition, log_dir: LogDir, entry: str, now: Instant
) -> Hosted:
    storage = futures.storage
    path = f"{log_dir.path}/{directory_name(name)}"
    make_room(storage.disk, path)
    storage.disk.rename(f"{log_dir.path}/{entry}", path)
    # Nobody knows how far the one before was cleaned; all that is there may have gaps.
    cleaned_to = ANY_OFFSET if storage.config_of(name.topic).compacts else None
    hosted = storage.open(at, Double(log_dir, name, 0, 0, cleaned_to, 0, clean=False), now)
    if cleaned_to is not None:
        hosted.log.cleaned_to = hosted.log.log_end_offset
    storage.reconfigure(hosted)
    return hosted
