"""The epochs that this broker begins as a leader go to their logs' files, a few in a step: after the death of a broker
there may be thousands, and a node that is deaf for seconds misses its heartbeats.

Each log knows its new epoch at once, and writes it before the first batch that bears it, whatever waits here. So a
crash takes only epochs that have no records, as a loss of power may anyhow.
"""

from strandline.base.effects import Effect
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.replica.hosted import Host, Hosted

FILES_PER_STEP = 100
PAUSE_MS = 1  # whoever has asked meanwhile is heard first


class Turn:
    """A timer: the next ones may be written."""

    __slots__ = ("done", "files")

    def __init__(self, files: "EpochFiles") -> None:
        self.files = files
        self.done = False

    def expire(self, now: Instant) -> list[Effect]:
        self.done = True
        self.files.turn = None
        self.files.go_on(now)
        return []


class EpochFiles:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.waiting: dict[Hosted, None] = {}
        self.turn: Turn | None = None

    def go_on(self, now: Instant) -> None:
        """Write some; to be called after each step in which a leadership began."""
        if self.turn is not None:
            return
        for hosted in list(self.waiting)[:FILES_PER_STEP]:
            del self.waiting[hosted]
            if hosted.gone or not self.host.directories.is_live(hosted.directory):
                continue
            try:
                hosted.log.save_begun_epoch()
            except DiskError as error:
                self.host.fail(hosted.directory, error)
        if self.waiting:
            self.turn = Turn(self)
            self.host.timers.push(now + PAUSE_MS, self.turn)
