"""Entries of offset indexes: each names a byte at which a batch begins, and no batch before it has the entry's offset.

Entries above the high watermark, which is read before all, may be of batches that were cut, or come, meanwhile. What
lies behind damage in a segment was not read, and its entries are not judged.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from strandline_spark.jobs.audit.replicas import Known
from strandline_spark.jobs.audit.rows import KEYS, REPLICA, Row, case, found, frame, key_of, said
from strandline_spark.schemas import rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RULES = {"index": "an entry of an offset index does not point to the batch of its offset"}
THERE = rows(*KEYS, "segment long", "start long", "high_watermark long")
BROKEN = "fault in ('torn', 'corrupt')"


def index_entries(
    indexes: "DataFrame", batches: "DataFrame", known: Sequence[Known], segments: Sequence[Row], *, is_broken: bool
) -> "DataFrame":
    place = [*REPLICA, "segment"]
    of_replica = {one.key: one for one in known}
    there = [
        {**of_replica[key_of(row)].row, "segment": row["segment"]} for row in segments if key_of(row) in of_replica
    ]
    judged = indexes.join(F.broadcast(frame(batches.sparkSession, there, THERE)), place).where(
        "offset < high_watermark and offset >= start"
    )
    if is_broken:
        broken = batches.where(BROKEN).groupBy(*place).agg(F.expr("min(position) as unread_from"))
        judged = judged.join(F.broadcast(broken), place, "left").where("unread_from is null or position < unread_from")
    begins = batches.where(f"fault is null or not {BROKEN}").select(*place, "position", "base_offset")
    wrong = judged.join(begins, [*place, "position"], "left").where("base_offset is null or base_offset > offset")
    columns = ("segment", "offset", "position")
    nowhere = said("segment %d: the entry of offset %d points to byte %d, where no batch begins", *columns)
    later = said("segment %d: the entry of offset %d points to byte %d, to a later batch", *columns)
    what = f"if(base_offset is null, {nowhere}, {later})"
    return found(wrong, case("true", "index", what, offset="offset", end="offset + 1"))
