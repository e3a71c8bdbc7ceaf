"""The leader epochs of a log, and Kafka's `leader-epoch-checkpoint` that has them.

Invariants (`StoredLog.check` executes the first):
  - the file has every epoch before a batch of that epoch is written; only an epoch without a batch may be missing in it
    (`is_behind`)
  - like the batches that bear an epoch the file is durable after the next sync
"""

from strandline.base.ports import Disk
from strandline.log.checkpoints import Unreadable, format_epochs, parse_epochs
from strandline.log.epochs import Epochs
from strandline.log.unsynced import Unsynced

EPOCHS_FILE = "leader-epoch-checkpoint"


class EpochFile:
    def __init__(self, disk: Disk, directory: str, unsynced: Unsynced) -> None:
        self.disk = disk
        self.directory = directory
        self.unsynced = unsynced
        self.epochs = Epochs()
        self.is_behind = False  # the file lacks the last epoch, in which nothing is written yet

    @property
    def path(self) -> str:
        return f"{self.directory}/{EPOCHS_FILE}"

    def assign(self, epoch: int, start_offset: int) -> None:
        """An epoch begins: the file is replaced at once."""
        assert start_offset >= 0
        if self.epochs.assign(epoch, start_offset):
            self.save()

    def begin(self, epoch: int, log_end_offset: int) -> None:
        """A leader begins an epoch, and has written nothing in it: the file may wait for the first batch."""
        assert log_end_offset >= 0
        if self.epochs.assign(epoch, log_end_offset):
            self.is_behind = True

    def catch_up(self) -> None:
        if self.is_behind:
            self.save()

    def save_if_different(self) -> None:
        """Before a clean stop, which vouches for the file: it has what the process knows, whatever lay there."""
        content = self.disk.read_file(self.path)
        if content != format_epochs(self.epochs.entries) and (content is not None or self.epochs.entries):
            self.save()

    def cut_end(self, offset: int) -> None:
        assert offset >= 0
        if self.epochs.cut_end(offset):
            self.save()

    def cut_start(self, offset: int) -> None:
        assert offset >= 0
        if self.epochs.cut_start(offset):
            self.save()

    def clear(self) -> None:
        self.epochs.clear()
        self.save()

    def save(self) -> None:
        self.epochs.check()
        self.is_behind = False
        self.disk.write_file(self.path, format_epochs(self.epochs.entries))
        self.unsynced.add(self.path, self.directory)


def read_epochs(disk: Disk, directory: str) -> Epochs:
    """Empty if there is no file that can be read, or if it is out of order: then the batches count."""
    content = disk.read_file(f"{directory}/{EPOCHS_FILE}")
    try:
        entries = [] if content is None else parse_epochs(content)
    except Unreadable:
        entries = []
    epochs = Epochs(entries)
    return epochs if epochs.entries == entries else Epochs()
