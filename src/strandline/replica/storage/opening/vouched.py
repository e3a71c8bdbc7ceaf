"""After a clean stop: is each log what the inventory of the stop says (`log/evidence/inventory.py`)? One that is not is
checked batch by batch, and may be evidence that this broker has lost records.

The inventory's offsets take the place of those in the checkpoints, which may have been changed too.
"""

from collections.abc import Generator, Iterator, Sequence

from strandline.base.effects import Effect, Report
from strandline.base.ids import TopicPartition, Uuid, parse_uuid
from strandline.base.ports import Disk
from strandline.log.directory import DamagedMetadata, read_topic_id, write_partition_metadata
from strandline.log.evidence.inventory import RECORDS, Left, State, own_segments, state_of
from strandline.log.segment import file_name
from strandline.replica.hosting.rows import Offsets, Rows
from strandline.replica.storage.opening.owners import set_aside, stray_name


class Inventory:
    """What a start found in one log directory."""

    def __init__(self, disk: Disk, directory: str, left: Sequence[Left]) -> None:
        self.disk = disk
        self.directory = directory
        self.left = {row.name: row for row in left if not row.is_in_doubt}
        assert all(0 <= row.start <= row.end for row in self.left.values())

    def instead_of(self, saved: Rows) -> Rows:
        """The offsets of the logs that a stop vouches for; of others what the checkpoints say."""
        logs = self.left.items()
        return Rows(
            high_watermarks=self.others(saved.high_watermarks) | {name: row.high_watermark for name, row in logs},
            recovery_points=self.others(saved.recovery_points or {}) | {name: row.end for name, row in logs},
            log_starts=self.others(saved.log_starts) | {name: row.start for name, row in logs if row.start > 0},
            cleaned=self.others(saved.cleaned)
            | {name: row.cleaned_to for name, row in logs if row.cleaned_to is not None},
            topic_ids=saved.topic_ids,
        )

    def others(self, saved: Offsets) -> Offsets:
        return {name: offset for name, offset in saved.items() if name not in self.left}

    def state_of(self, entry: str, name: TopicPartition) -> Generator[Effect, None, State | None]:
        """What the log in `entry` is now. None: it is another partition's, and is kept out of the way. Where only the
        topic id was changed, it is written again."""
        path = f"{self.directory}/{entry}"
        row = self.left.get(name)
        assert row is None or row.name == name
        if row is None:
            yield Report("warning", f"{path} was not there at the last stop, and is checked as after a crash")
            return State.UNLISTED
        state = state_of(self.disk, path, row)
        topic_id = parse_uuid(row.topic_id)
        if topic_id != topic_id_in(self.disk, path):
            if state is State.RECORDS_CHANGED:
                aside = set_aside(self.disk, self.directory, entry)
                yield Report("error", f"{path} has another log than at the last stop; it is kept in {aside}")
                return None
            yield Report("warning", f"{path} had lost its topic id, or had another one; it is restored")
            write_partition_metadata(self.disk, path, topic_id)
        if state is State.RECORDS_CHANGED:
            yield from self.keep_own(entry, row)
        if state is not State.WHOLE:
            yield Report("warning", f"{path} was changed since the last stop and is checked: {state.value}")
        return state

    def keep_own(self, entry: str, row: Left) -> Iterator[Effect]:
        """Segments that may be another log's, and what no longer follows the log's own ones, are kept out of the way.
        Their batches may be whole, so nothing else would show that they do not belong here."""
        path = f"{self.directory}/{entry}"
        own = [file_name(base, RECORDS) for base in own_segments(self.disk, path, row)]
        others = [name for name in self.disk.list(path) if name.endswith(RECORDS) and name not in own]
        assert not set(own) & set(others)
        if others:
            aside = stray_name(self.disk, self.directory, entry)
            self.disk.make_directory(aside)
            for name in others:
                self.disk.rename(f"{path}/{name}", f"{aside}/{name}")
            yield Report("error", f"{path} has segments that are not its own; they are kept in {aside}")


def topic_id_in(disk: Disk, path: str) -> Uuid | None:
    try:
        return read_topic_id(disk, path)
    except DamagedMetadata:
        return None
