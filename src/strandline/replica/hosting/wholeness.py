"""Which replicas of this broker are whole: they have everything that they had when they were in sync last, and since.

GetReplicaLogInfo says which are, for the loss ledger alone: an unclean election among whole
replicas loses nothing (`controller/partitions/lossless.py`). It never makes anybody eligible. In doubt a replica is not
whole.

A replica is whole from the moment on in which it leads, or metadata has it in another leader's ISR. It stays so through
kills of its process (`log/evidence/wholeness.py`), unless a start finds anything wrong with its log. It is whole no
longer when

  - its broker finds that it lost records, or gives it up (`discard`);
  - a log directory of the broker fails: nobody knows what its system still writes (`end`);
  - the controller has registered another process since the one that vouched for it: the files are older (`registered`).

Invariant: the files never name a replica that is not whole.
"""

from collections.abc import Mapping

from strandline.base.ids import NOBODY, ZERO_UUID, NodeId, TopicIdPartition, Uuid
from strandline.base.ports import Disk, DiskError
from strandline.log.evidence.clean_shutdown import Place
from strandline.log.evidence.wholeness import FILE, Vouched, distrust, page_of
from strandline.metadata.image import Partition


class WholeLogs:
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.logs: dict[TopicIdPartition, str] = {}  # and the path of their directory
        self.place: Place | None = None  # None: nothing is written
        self.process = ZERO_UUID  # the incarnation that the files are of
        self.before: Mapping[str, frozenset[TopicIdPartition]] = {}  # what they say, while a start opens logs
        self.names_gone = False  # do the files name logs that are not whole any more?
        self.has_new = False
        self.more_come = False  # a step or two from now

    def begin(self, place: Place, vouched: Vouched | None) -> None:
        assert self.place is None
        self.place = place
        if vouched is not None:
            self.process, self.before = vouched.process, vouched.logs

    def opened(self, at: TopicIdPartition, directory: str, *, is_sound: bool) -> None:
        """`is_sound`: the start found nothing wrong with the log."""
        if is_sound and at in self.before.get(directory, ()):
            self.logs[at] = directory

    def all_opened(self) -> None:
        self.before = {}
        self.save()

    def registered(self, incarnation: Uuid, *, follows_on: bool) -> None:
        """Metadata has this process. `follows_on`: the one before it, for the controller, is the one that vouched."""
        if not follows_on:
            self.logs.clear()
        self.process = incarnation
        self.save()

    def has_role(self, me: NodeId, at: TopicIdPartition, partition: Partition, directory: str) -> None:
        """Metadata gives it a role, and it has taken it."""
        assert me in partition.replicas, at
        if partition.leader != NOBODY and me in partition.isr:
            self.add(at, directory)

    def add(self, at: TopicIdPartition, directory: str) -> None:
        assert directory, at
        if self.logs.get(at) != directory:
            self.names_gone = self.names_gone or at in self.logs
            self.logs[at] = directory
            self.has_new = True

    def forget(self, at: TopicIdPartition) -> None:
        """Its log is gone."""
        self.names_gone = self.logs.pop(at, None) is not None or self.names_gone

    def discard(self, at: TopicIdPartition) -> None:
        """It is in doubt from now on, also for the next start."""
        if self.logs.pop(at, None) is not None:
            self.save()

    def end(self) -> None:
        """All are in doubt, and nothing is vouched for until the next start."""
        self.logs.clear()
        place, self.place = self.place, None
        assert not self.logs
        distrust(self.disk, () if place is None else (path for path, _ in place.directories))

    def save_changes(self) -> None:
        """A file names all whole logs of a directory. So while many are created it is not written for each few."""
        if self.names_gone or (self.has_new and not self.more_come):
            self.save()
        assert not self.names_gone

    def save(self, *, durably: bool = False) -> None:
        """Only a stop in order needs it to be durable: see `log/evidence/wholeness.py`."""
        self.names_gone = self.has_new = False
        if self.place is None:
            return
        try:
            for path, directory_id in self.place.directories:
                logs = [at for at, directory in self.logs.items() if directory == path]
                content = page_of(self.place, directory_id, self.disk.boot_id(), self.process, logs)
                (self.disk.save if durably else self.disk.write_file)(f"{path}/{FILE}", content)
        except DiskError:
            self.end()
