"""A log that was found on disk, before it is opened: perhaps the double of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.ids import TopicPartition, Uuid
from strandline.base.ports import Disk, DiskError
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.log.config import LogConfig
from strandline.log.directory import directory_name
from strandline.log.evidence.inventory import State
from strandline.log.log import Log
from strandline.log.tail import TailBudget
from strandline.replica.config import LogDir

if TYPE_CHECKING:
    from strandline.replica.hosted import Hosted
    from strandline.replica.storage.storage import Storage


class Double(Value, frozen=True):
    """Where it lies, and what the checkpoints of its directory say of it."""

    directory: LogDir
    name: TopicPartition
    recovery_point: int
    log_start_offset: int
    cleaned_to: int | None
    high_watermark: int
    clean: bool
    state: State | None = None  # beside what a clean stop said of it; None: nothing is known

    @property
    def is_trusted(self) -> bool:
        return self.clean and self.state in (None, State.WHOLE)

    @property
    def known_end(self) -> int:
        """Its log ended here, or later."""
        return max(self.high_watermark, self.recovery_point, self.log_start_offset)

    def open(self, disk: Disk, config: LogConfig, now: Instant, tail_budget: TailBudget) -> Log:
        return Log.open(
            disk,
            f"{self.directory.path}/{directory_name(self.name)}",
            config,
            now,
            clean=self.is_trusted,
            recovery_point=0 if self.clean and not self.is_trusted else self.recovery_point,
            log_start_offset=self.log_start_offset,
            cleaned_to=self.cleaned_to,
            tail_budget=tail_budget,
        )


def chosen(storage: Storage, hosted: Hosted, directory_id: Uuid, now: Instant) -> Hosted | None:
    """Of two logs of one replica that one counts which metadata names; the other is deleted. Where it names neither,
    the first that was found counts, and the other is left alone. None: it cannot be read."""
    host, double = storage.host, storage.doubles.get(hosted.at)
    if double is None or directory_id not in (hosted.directory.directory_id, double.directory.directory_id):
        return hosted
    del storage.doubles[hosted.at]
    if directory_id == hosted.directory.directory_id:
        storage.bury(double.directory, directory_name(hosted.name), hosted.at)
        return hosted
    try:
        other = storage.open(hosted.at, double, now)
        storage.findings.end(double.directory)
    except DiskError as error:
        host.fail(double.directory, error)
        host.absent[hosted.at] = directory_id
        return None
    storage.delete(hosted)
    hosted.gone = True
    host.put(other)
    return other
