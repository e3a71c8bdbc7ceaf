"""A log that was found on disk, before it is opened: perhaps the second one of its replica."""

from strandline.base.ids import TopicPartition
from strandline.base.ports import Disk
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.log.config import LogConfig
from strandline.log.directory import directory_name
from strandline.log.evidence.inventory import State
from strandline.log.log import Log
from strandline.log.tail import TailBudget
from strandline.replica.config import LogDir


class FoundLog(Value, frozen=True):
    """Where it lies, and what the checkpoints of its directory say of it."""

    directory: LogDir
    name: TopicPartition
    recovery_point: int
    log_start_offset: int
    cleaned_to: int | None
    high_watermark: int
    clean: bool
    state: State | None = None  # beside what a clean stop said of it; None: nothing is known

    @property
    def is_trusted(self) -> bool:
        return self.clean and self.state in (None, State.WHOLE)

    @property
    def known_end(self) -> int:
        """Its log ended here, or later."""
        assert min(self.high_watermark, self.recovery_point, self.log_start_offset) >= 0
        return max(self.high_watermark, self.recovery_point, self.log_start_offset)

    def open(self, disk: Disk, config: LogConfig, now: Instant, tail_budget: TailBudget) -> Log:
        return Log.open(
            disk,
            f"{self.directory.path}/{directory_name(self.name)}",
            config,
            now,
            clean=self.is_trusted,
            recovery_point=0 if self.clean and not self.is_trusted else self.recovery_point,
            log_start_offset=self.log_start_offset,
            cleaned_to=self.cleaned_to,
            high_watermark=self.high_watermark,
            tail_budget=tail_budget,
        )
