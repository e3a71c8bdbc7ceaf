"""What the checkpoints of a log directory say of its logs when a broker starts.

A damaged one is reported, and counts as one without rows, as in Kafka: what it would have said is assumed at its worst.
That cannot be for the cleaner's, since the logs that were compacted would be cut at their first gaps: its directory has
failed, unless the marker of a clean stop has the same offsets.
"""

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


def read_rows(disk: Disk, directory: str, effects: list[Effect], *, is_vouched: bool) -> Rows:
    """`is_vouched`: the marker of a clean stop has the offsets too."""
    cleaned = read_checkpoint(disk, directory, CLEANED, effects, is_needed=not is_vouched)
    return Rows(
        read_checkpoint(disk, directory, HIGH_WATERMARKS, effects) or {},
        read_checkpoint(disk, directory, RECOVERY_POINTS, effects),
        read_checkpoint(disk, directory, LOG_STARTS, effects) or {},
        cleaned or {},
        read_topic_ids(disk, directory, effects),
    )


def read_topic_ids(disk: Disk, directory: str, effects: list[Effect]) -> dict[TopicPartition, Uuid]:
    path = f"{directory}/{TOPIC_IDS}"
    content = disk.read_file(path)
    try:
        return {} if content is None else parse_topic_ids(content)
    except Unreadable as error:
        without = "a log beside it that has lost its topic id cannot have it again"
        effects.append(Report("warning", f"{path} is damaged, {without}: {error}"))
        return {}


def read_checkpoint(
    disk: Disk, directory: str, file: str, effects: list[Effect], *, is_needed: bool = False
) -> Offsets | None:
    path = f"{directory}/{file}"
    content = disk.read_file(path)
    try:
        return {} if content is None else parse_offsets(content)
    except Unreadable as error:
        if is_needed:
            raise DiskError(f"{path} is damaged, and compacted logs are cut without it: {error}") from None
        without = WITHOUT.get(file, "the marker of the last stop says how far logs are compacted")
        effects.append(Report("warning", f"{path} is damaged, {without}: {error}"))
        return None
