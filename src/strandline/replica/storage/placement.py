"""In which log directory of this broker a new log is created."""

from strandline.base.ids import ZERO_UUID, TopicPartition, Uuid
from strandline.replica.config import LogDir
from strandline.replica.hosting.host import Host
from strandline.replica.storage.cordoned import cordoned

PREFERRED_MAX = 10_000


class Placement:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.preferred: dict[TopicPartition, str] = {}  # where an operator wants what is still to be created

    def prefer(self, name: TopicPartition, path: str) -> None:
        """If the partition is ever created here."""
        if len(self.preferred) < PREFERRED_MAX:
            self.preferred[name] = path
        assert len(self.preferred) <= PREFERRED_MAX

    def place(self, name: TopicPartition, directory_id: Uuid) -> LogDir:
        """The live directory that metadata names, else the preferred one, else the one with the fewest logs of those
        that are not cordoned: if all are, the replica was placed here just before, and goes into the first."""
        preferred, live = self.preferred.pop(name, None), self.host.directories.live
        assert live
        for log_dir in live:
            if log_dir.directory_id == directory_id and directory_id != ZERO_UUID:
                return log_dir
        if len(live) == 1:
            return live[0]
        for log_dir in live:
            if log_dir.path == preferred:
                return log_dir
        closed = [log_dir.path for log_dir in cordoned(self.host)]
        free = [log_dir for log_dir in live if log_dir.path not in closed] or live[:1]
        counts = {log_dir.path: 0 for log_dir in free}
        for hosted in self.host.partitions.all():
            if hosted.directory.path in counts:
                counts[hosted.directory.path] += 1
        assert free
        return min(free, key=lambda log_dir: counts[log_dir.path])
