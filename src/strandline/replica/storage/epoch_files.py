"""The epochs that this broker begins as a leader go to their logs' files, a few in a step: after the death of a broker
there may be thousands, and a node that is deaf for seconds misses its heartbeats.

Each log knows its new epoch at once, and writes it before the first batch that bears it, whatever waits here. So a
crash takes only epochs that have no records, as a loss of power may anyhow.
"""

from itertools import islice

from strandline.base.effects import Effect
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.base.timers import Alarm
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted

FILES_PER_STEP = 40
PAUSE_MS = 1  # requests that have come meanwhile are served first


class EpochFiles:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.waiting: dict[Hosted, None] = {}
        self.turn = Alarm(host.timers, self.take_turn)

    def add(self, hosted: Hosted) -> None:
        """Its leadership has just begun."""
        assert not hosted.gone, hosted.name
        self.waiting[hosted] = None

    def go_on(self, now: Instant) -> None:
        """Write some; to be called after each step in which a leadership began."""
        if not self.turn.done:
            return
        for hosted in list(islice(self.waiting, FILES_PER_STEP)):
            del self.waiting[hosted]
            if hosted.gone or not self.host.directories.is_live(hosted.directory):
                continue
            try:
                hosted.log.save_begun_epoch()
            except DiskError as error:
                self.host.fail(hosted.directory, error)
        if self.waiting:
            assert self.turn.done
            self.turn.set(now + PAUSE_MS)

    def take_turn(self, now: Instant) -> list[Effect]:
        self.go_on(now)
        return []
