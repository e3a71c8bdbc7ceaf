"""One walk over each log, in the order of its files, with what the batch before said: many rules need no more."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from strandline_spark.jobs.audit.replicas import SOUND, Known, with_bounds
from strandline_spark.jobs.audit.rows import KEYS, REPLICA, Key, Row, found, frame, key_of
from strandline_spark.jobs.audit.subjects import batches as single
from strandline_spark.jobs.audit.subjects import offsets, sequences
from strandline_spark.schemas import rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOLLOWING = rows(*KEYS, "segment long", "following long")


def along_the_logs(batches: "DataFrame", known: Sequence[Known], segments: Sequence[Row]) -> "DataFrame":
    """Findings of single batches, of offsets and epochs along a log, and of producers' sequences."""
    files, file = ", ".join(REPLICA), ", ".join((*REPLICA, "segment"))
    before = "rows between unbounded preceding and 1 preceding"
    # As `levels.by_log` sorts them. Over the wire there are neither segments nor positions: offsets alone.
    in_log = f"over (partition by {files} order by segment, position, base_offset {before})"
    in_file = f"over (partition by {file} order by position, base_offset {before})"
    after = "rows between 1 following and unbounded following"
    later_in_file = f"over (partition by {file} order by position, base_offset {after})"
    end = f"if({SOUND}, last_offset + 1, null)"
    walked = batches.selectExpr(
        "*",
        f"last_value({end}, true) {in_log} as expected",
        f"last_value(if({SOUND}, leader_epoch, null), true) {in_log} as epoch_before",
        f"max({end}) {in_file} as good",
        f"first_value(if({SOUND}, base_offset, null), true) {later_in_file} as next_good",
    ).join(F.broadcast(following(batches, segments)), [*REPLICA, "segment"], "left")
    odd = sequences.with_skipped(walked).where(
        "fault is not null or base_offset <> expected or leader_epoch < epoch_before or last_offset >= following"
        " or records <> last_offset - base_offset + 1 or skipped <> 0"
    )
    return found(with_bounds(odd, known), *single.cases(), *offsets.cases(), *sequences.cases())


def following(batches: "DataFrame", segments: Sequence[Row]) -> "DataFrame":
    """REPLICA, `segment`, `following`: the first offset of the next one."""
    bases: dict[Key, list[int]] = {}
    for row in segments:
        bases.setdefault(key_of(row), []).append(row["segment"])
    pairs = (
        {**dict(zip(REPLICA, key, strict=True)), "segment": base, "following": after}
        for key, held in bases.items()
        for base, after in pairwise(sorted(held))
    )
    return frame(batches.sparkSession, pairs, FOLLOWING)
