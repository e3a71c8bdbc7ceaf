"""What the checkpoints of a log directory say of its logs when a broker starts.

A damaged one is reported, and counts as one without rows, as in Kafka: what it would have said is assumed at its worst.
That cannot be for the cleaner's, since the logs that were compacted would be cut at their first gaps: its directory has
failed, unless the marker of a clean stop has the same offsets. An empty one beside which our own file of topic ids is
missing is Kafka's, which writes its first row into it when it compacts a log.
"""

from collections.abc import Generator

from strandline.base.effects import Effect, Report
from strandline.base.ids import TopicPartition, Uuid
from strandline.base.ports import Disk, DiskError
from strandline.base.value import Value
from strandline.log.checkpoints import Unreadable, parse_offsets, parse_topic_ids

HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"
TOPIC_IDS = "topic-id-checkpoint"  # our own
WITHOUT = {
    HIGH_WATERMARKS: "nothing counts as committed until the replicas of a log have told how far they are",
    RECOVERY_POINTS: "after an unclean stop every log is checked from its beginning",
    LOG_STARTS: "every log begins where its first segment does",
}
Offsets = dict[TopicPartition, int]


class Rows(Value, frozen=True):
    high_watermarks: Offsets
    recovery_points: Offsets | None  # None: not known
    log_starts: Offsets
    cleaned: Offsets
    topic_ids: dict[TopicPartition, Uuid]  # of all logs that have a recovery point, and perhaps of more

    def names(self) -> list[TopicPartition]:
        return [*self.high_watermarks, *(self.recovery_points or ()), *self.log_starts, *self.cleaned, *self.topic_ids]

    def durable_below(self, name: TopicPartition) -> int | None:
        """None: it is not known."""
        return None if self.recovery_points is None else self.recovery_points.get(name, 0)


def read_rows(disk: Disk, directory: str, *, is_vouched: bool) -> Generator[Effect, None, Rows]:
    """`is_vouched`: the marker of a clean stop has the offsets too."""
    cleaned = yield from read_checkpoint(disk, directory, CLEANED, is_needed=not is_vouched)
    high_watermarks = yield from read_checkpoint(disk, directory, HIGH_WATERMARKS)
    recovery_points = yield from read_checkpoint(disk, directory, RECOVERY_POINTS)
    log_starts = yield from read_checkpoint(disk, directory, LOG_STARTS)
    topic_ids = yield from read_topic_ids(disk, directory)
    return Rows(high_watermarks or {}, recovery_points, log_starts or {}, cleaned or {}, topic_ids)


def read_topic_ids(disk: Disk, directory: str) -> Generator[Effect, None, dict[TopicPartition, Uuid]]:
    path = f"{directory}/{TOPIC_IDS}"
    content = disk.read_file(path)
    try:
        return {} if content is None else parse_topic_ids(content)
    except Unreadable as error:
        without = "a log beside it that has lost its topic id cannot have it again"
        yield Report("warning", f"{path} is damaged, {without}: {error}")
        return {}


def read_checkpoint(
    disk: Disk, directory: str, file: str, *, is_needed: bool = False
) -> Generator[Effect, None, Offsets | None]:
    path = f"{directory}/{file}"
    content = disk.read_file(path)
    is_kafkas = file == CLEANED and content == b"" and not disk.exists(f"{directory}/{TOPIC_IDS}")
    try:
        return {} if content is None or is_kafkas else parse_offsets(content)
    except Unreadable as error:
        if is_needed:
            raise DiskError(f"{path} is damaged, and compacted logs are cut without it: {error}") from None
        without = WITHOUT.get(file, "the marker of the last stop says how far logs are compacted")
        yield Report("warning", f"{path} is damaged, {without}: {error}")
        return None
