"""Which log directories of this broker live (KIP-858).

A directory in which one operation of the disk failed is offline from then on, until the node begins anew: what else is
in it may be damaged, and after a flush that failed it is not known what the disk has. Its replicas are offline with it;
the broker goes on with the others. Where it was only full, the driver begins the node anew when there is room.

Invariants:
  - at least one directory lives, and so does the one that the broker cannot do without: where that fails, `fail` raises
  - nothing is written to a directory after it has failed, and nothing is read from it
"""

from collections.abc import Sequence

from strandline.base.ids import ZERO_UUID, Uuid
from strandline.base.ports import DiskError, DiskFull
from strandline.metadata.image import LOST_DIRECTORY
from strandline.replica.config import LogDir


class Directories:
    def __init__(self, log_dirs: Sequence[LogDir], dead: Sequence[LogDir] = (), vital: str | None = None) -> None:
        """`dead`: those that could not be read at start; their ids may be unknown. `vital`: the metadata log's."""
        assert log_dirs
        assert not {log_dir.path for log_dir in log_dirs} & {log_dir.path for log_dir in dead}
        self.live = list(log_dirs)
        self.offline = {log_dir.path: log_dir for log_dir in dead}
        self.full: dict[str, None] = {}  # of those that are offline, those that lack room and nothing else
        self.vital = vital
        self.news: list[tuple[LogDir, DiskError]] = []  # failed, and what follows from that is not done yet

    def is_live(self, log_dir: LogDir) -> bool:
        return log_dir.path not in self.offline

    def fail(self, log_dir: LogDir, error: DiskError) -> bool:
        """Is that news? Raises the error again if the broker cannot live without this directory."""
        if log_dir.path in self.offline:
            if log_dir.path in self.full and not isinstance(error, DiskFull):  # a flush that was under way
                del self.full[log_dir.path]
                self.news.append((log_dir, error))
            return False
        if log_dir.path == self.vital or len(self.live) == 1:
            raise error
        assert log_dir in self.live, log_dir.path
        self.live.remove(log_dir)
        self.offline[log_dir.path] = log_dir
        if isinstance(error, DiskFull):
            self.full[log_dir.path] = None
        self.news.append((log_dir, error))
        assert self.live, "it has raised then"
        return True

    def take_news(self) -> list[tuple[LogDir, DiskError]]:
        news, self.news = self.news, []
        assert not any(self.is_live(log_dir) for log_dir, _ in news), "what has failed stays offline"
        return news

    @property
    def awaited(self) -> tuple[str, ...]:
        """Full ones for which the node may begin anew by itself. Not where another one has failed: after a flush that
        failed files show what the disk may not have, and an operator has to look at it."""
        return tuple(self.full) if self.full.keys() == self.offline.keys() else ()

    @property
    def offline_ids(self) -> tuple[Uuid, ...]:
        return tuple(log_dir.directory_id for log_dir in self.offline.values() if log_dir.directory_id != ZERO_UUID)

    def holds_offline(self, directory: Uuid, *, is_new: bool) -> bool:
        """Must a replica that no live directory has be taken for one in a directory that is offline?

        Where its directory is not known it may lie there, unless it is only now being created. An empty log in its
        place could lead, and lose all that is committed.
        """
        if any(log_dir.directory_id == directory for log_dir in self.live):
            return False
        if directory in self.offline_ids:  # guard: empty-log-in-place-of-an-offline-one
            return True
        return bool(self.offline) and not is_new  # guard: empty-log-where-its-place-is-unknown

    def reported_id(self, log_dir: LogDir) -> Uuid:
        """The id by which the controller knows an offline directory."""
        assert not self.is_live(log_dir), log_dir.path
        return LOST_DIRECTORY if log_dir.directory_id == ZERO_UUID else log_dir.directory_id

    def check(self) -> None:
        assert self.live
        assert not any(log_dir.path in self.offline for log_dir in self.live)
        assert self.full.keys() <= self.offline.keys()
        assert self.vital is None or self.vital not in self.offline
