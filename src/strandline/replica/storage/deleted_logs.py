"""Deleted logs: renamed at once, so that nothing is left that looks like a log, and removed by an effect.

A topic's many files are not waited for; what a stop leaves is removed by the next start.
"""

from strandline.base.effects import Effect, Remove
from strandline.base.ids import TopicIdPartition, TopicPartition
from strandline.base.ports import Disk, DiskError
from strandline.log.directory import DELETED_SUFFIX, directory_name
from strandline.log.log import Log
from strandline.replica.config import LogDir
from strandline.replica.hosting.host import Host
from strandline.replica.storage.opening.owners import ENTRY_MAX


class DeletedLogs:
    def __init__(self, host: Host, disk: Disk) -> None:
        self.host = host
        self.disk = disk
        self.renamed: list[str] = []  # paths whose files are still there
        self.count = 0  # in this process

    def delete(self, log: Log, log_dir: LogDir, name: TopicPartition, at: TopicIdPartition) -> None:
        try:
            log.abandon()
        except DiskError as error:
            self.host.fail(log_dir, error)
        else:
            self.rename(log_dir, directory_name(name), at)

    def rename(self, log_dir: LogDir, entry: str, at: TopicIdPartition) -> None:
        """No two deleted logs have one name: a partition may come back and go again before the first is removed."""
        assert not entry.endswith(DELETED_SUFFIX), entry
        self.count += 1
        deleted = f"{entry[:ENTRY_MAX]}.{at.topic_id.hex()}.{self.count}{DELETED_SUFFIX}"
        try:
            self.disk.rename(f"{log_dir.path}/{entry}", f"{log_dir.path}/{deleted}")
        except DiskError as error:
            self.host.fail(log_dir, error)
        else:
            assert len(deleted) <= 255, deleted
            self.renamed.append(f"{log_dir.path}/{deleted}")

    def remove(self) -> list[Effect]:
        if not self.renamed:
            return []
        assert len(self.renamed) <= self.count
        renamed, self.renamed = self.renamed, []
        assert all(path.endswith(DELETED_SUFFIX) for path in renamed)
        return [Remove(tuple(renamed))]
