"""Entries of offset indexes: each names a byte at which a batch begins, and no batch before it has the entry's offset.

Indexes are read before the batches that they point to; entries above the high watermark may be of batches that were cut
since. What lies behind damage in a segment was not read, and its entries are not judged.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from strandline.pipeline.jobs.audit.rows import REPLICA, case, found, local, said

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RULES = {"index": "an entry of an offset index does not point to the batch of its offset"}
BROKEN = "fault in ('torn', 'corrupt')"


def index_entries(
    indexes: "DataFrame", batches: "DataFrame", replicas: "DataFrame", segments: "DataFrame"
) -> "DataFrame":
    place = [*REPLICA, "segment"]
    broken = batches.where(BROKEN).groupBy(*place).agg(F.expr("min(position) as unread_from"))
    bounds = F.broadcast(replicas.select(*REPLICA, "start", "high_watermark"))
    known = local(segments.select(*place).join(bounds, list(REPLICA)).join(broken, place, "left"))
    judged = indexes.join(F.broadcast(known), place).where(
        "offset < high_watermark and offset >= start and (unread_from is null or position < unread_from)"
    )
    begins = batches.where(f"fault is null or not {BROKEN}").select(*place, "position", "base_offset")
    wrong = judged.join(begins, [*place, "position"], "left").where("base_offset is null or base_offset > offset")
    told = ("segment", "offset", "position")
    nowhere = said("segment %d: the entry of offset %d points to byte %d, where no batch begins", *told)
    later = said("segment %d: the entry of offset %d points to byte %d, to a later batch", *told)
    what = f"if(base_offset is null, {nowhere}, {later})"
    return found(wrong, case("true", "index", what, offset="offset", end="offset + 1"))
