"""A log that was found on disk, and what the checkpoints of its directory say of it.

A replica may have two, if one of its directories was offline for a while: metadata says which counts.
"""

from strandline.base.ids import TopicPartition
from strandline.base.value import Value
from strandline.replica.config import LogDir


class Double(Value, frozen=True):
    directory: LogDir
    name: TopicPartition
    recovery_point: int
    log_start_offset: int
    cleaned_to: int | None
    high_watermark: int
    clean: bool
