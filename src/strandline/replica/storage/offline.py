"""What follows where a log directory has failed: nobody waits for its replicas, copies to them, or asks in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.effects import AwaitRoom, Effect, Report
from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicIdPartition, Uuid
from strandline.base.ports import DiskError, DiskFull
from strandline.base.time import Instant
from strandline.log.evidence.inventory import Left
from strandline.log.files.room import mib, needed_room
from strandline.metadata.image import LOST_DIRECTORY, directory_of
from strandline.metadata.losses import NO_END

if TYPE_CHECKING:
    from strandline.replica.replicas import Replicas


def take_offline(replicas: Replicas, now: Instant) -> list[Effect]:
    """The replicas of directories that have just failed are hosted no longer. Their files stay open, since to close
    them would write to them."""
    effects: list[Effect] = []
    host = replicas.host
    news, host.directories.news = host.directories.news, []
    for log_dir, why in news:
        effects.append(Report("error", told_of(replicas, log_dir.path, why)))
        for hosted in [h for h in host.all() if h.directory.path == log_dir.path]:
            hosted.gone = True
            host.drop(hosted)
            replicas.storage.flushing.pop(hosted.at, None)
            hosted.log.tail.clear()
            for fetcher in replicas.fetchers.values():
                fetcher.leave(hosted.at)
            effects += hosted.fail_waiting(ErrorCode.KAFKA_STORAGE_ERROR, now)
            replicas.fetching.role_changed(hosted, effects, now)
    replicas.futures.drop_offline()
    effects.append(AwaitRoom(host.directories.awaited))
    if replicas.has_caught_up:
        tell_absent(replicas)
    return effects


def told_of(replicas: Replicas, path: str, why: DiskError) -> str:
    if not isinstance(why, DiskFull):
        return f"the log directory {path} is offline from now on: {why}"
    try:
        total, free = replicas.storage.disk.usage(path)
    except DiskError:
        total = free = -1
    rest = f"; {mib(free)} of {mib(total)} are free, {mib(needed_room(total))} are needed" if total >= 0 else ""
    is_awaited = path in replicas.host.directories.awaited
    then = (
        "restarts in order by itself when there is room" if is_awaited else "must be restarted: another one has failed"
    )
    return (
        f"the log directory {path} is full, and offline from now on: {why}{rest}. Make room there; this broker goes on"
        f" with the others, and {then}"
    )


def is_absent(replicas: Replicas, at: TopicIdPartition, directory: Uuid, *, is_new: bool) -> bool:
    """Does a replica that metadata has in `directory` lie in one that is offline, or may it?"""
    host, directories = replicas.host, replicas.host.directories
    if at in host.absent:
        return True
    if host.find(at) is not None:
        return False
    if not directories.holds_offline(directory, is_new=is_new) and not replicas.futures.waits_for_current(at, is_new):
        return False
    host.absent[at] = directory if directory in directories.offline_ids else LOST_DIRECTORY
    return True


def tell_absent(replicas: Replicas) -> None:
    """A replica in an offline directory that the controller takes for one in another would be elected. Of those that
    metadata gives to other brokers nothing is to be said."""
    host = replicas.host
    for at, directory in list(host.absent.items()):
        partition = host.image.partition(at)
        if partition is None or host.me not in partition.replicas:
            del host.absent[at]
        else:
            replicas.assignments.lies(at, directory, directory_of(partition, host.me))


def left_offline(replicas: Replicas) -> dict[Uuid, tuple[Left, ...]]:
    """What lies in each directory that is offline at a stop, for its marker: the next start may find it again, and what
    it does not find there is lost. Before there is metadata, and every replica in it was looked for, nobody knows all
    of it."""
    if not replicas.has_caught_up or replicas.arrivals.waiting:
        return {}
    absent = replicas.host.absent.items()
    return {
        offline: tuple(Left.in_doubt(at, 0, NO_END) for at, where in absent if where in (offline, LOST_DIRECTORY))
        for offline in replicas.host.directories.offline_ids
    }
