"""Every acknowledged record, sought in the logs: below nobody's high watermark counts, the log of
who leads does.

Who leads is who knows of the latest leader epoch and, of several, whose log is longest: so no metadata are needed, and
none can be wrong. What retention has taken from that log is not missing, nor what a cleaner may have: of any replica,
since who leads may have copied what was left, and of all segments but the newest, since how far a pass came is written
down when it is over. The acknowledgements are read before the logs.

A record that is missing is sought in the loss ledger too: the loss that the cluster itself wrote down is still a loss,
and has a rule of its own.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from strandline_spark.jobs.audit.replicas import Known
from strandline_spark.jobs.audit.rows import REPLICA, Row, case, found, frame, key_of, said
from strandline_spark.schemas import rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RULES = {
    "acknowledged-lost": "a record that was acknowledged is in no replica",
    "acknowledged-not-led": "a record that was acknowledged is in replicas, but not in that of the latest leader",
    "acknowledged-lost-recorded": "a record that was acknowledged is missing, and recorded in the loss ledger",
    "acknowledged-twice": "two different records were acknowledged at one offset",
}
PLACE = ("topic", "partition")
LEADS = rows(
    *("topic string", "partition int", "start long", "cleaned_to long"),
    *("lead_broker int", "lead_directory string", "lead_topic_id string"),
)


def leading(known: Sequence[Known], segments: Sequence[Row] = ()) -> list[Row]:
    """One replica of each topic's partition, as a row of `LEADS`."""
    newest: dict[tuple[str, str, int], int] = {}  # segment: no cleaner is at it yet
    for row in segments:
        place = key_of(row)[2:]
        newest[place] = max(row["segment"], newest.get(place, 0))
    cleaned: dict[tuple[str, str, int], int] = {}
    for one in known:
        if one.cleaned_to is not None:
            before = cleaned.get(one.partition, newest.get(one.partition, 0))
            cleaned[one.partition] = max(one.cleaned_to, before)
    first: dict[tuple[str, int], Known] = {}
    for one in sorted(known, key=lambda one: (-one.latest, -one.end, one.key)):
        first.setdefault((one.key[2], one.key[4]), one)
    return [
        {
            **one.row,
            "cleaned_to": cleaned.get(one.partition),
            **{f"lead_{name}": one.row[name] for name in ("broker", "directory", "topic_id")},
        }
        for one in first.values()
    ]


def acknowledged_records(
    acknowledged: "DataFrame",
    records: "DataFrame",
    known: Sequence[Known],
    losses: "DataFrame",
    segments: Sequence[Row] = (),
) -> "DataFrame":
    """`records`: `broker, directory, topic, topic_id, partition, offset, crc32` of the topics that were written to;
    `losses`: `topic, partition, start, end` (−1: open), `certainty`, `cause`."""
    asked = acknowledged.groupBy(*PLACE, "offset").agg(
        F.expr("min(crc32) as wanted"), F.expr("count(distinct crc32) as versions")
    )
    lead = frame(records.sparkSession, leading(known, segments), LEADS)
    judged = asked.join(F.broadcast(lead), list(PLACE), "left").where(
        "(start is null or offset >= start) and (cleaned_to is null or offset >= cleaned_to)"
    )
    is_led = "(broker = lead_broker and directory = lead_directory and topic_id = lead_topic_id)"
    is_same = "(versions > 1 or wanted is null or wanted = crc32)"
    missing = (
        judged.join(records.select(*REPLICA, "offset", "crc32"), [*PLACE, "offset"], "left")
        .groupBy(*PLACE, "offset", "lead_broker")
        .agg(
            F.expr(f"coalesce(bool_or({is_led} and {is_same}), false) as is_there"),
            F.expr(f"coalesce(bool_or({is_led}), false) as is_other"),
            F.expr(f"array_sort(collect_set(broker) filter (where {is_same})) as held"),
        )
        .where("not is_there")
    )
    what = said("%d different records were acknowledged at %d", "versions", "offset")
    place = {"offset": "offset", "end": "offset + 1", "broker": "null"}
    twice = found(asked, case("versions > 1", "acknowledged-twice", what, **place))
    return twice.unionByName(with_ledger(missing, losses))


def with_ledger(missing: "DataFrame", losses: "DataFrame") -> "DataFrame":
    names = {"topic": "lost_topic", "partition": "lost_partition", "start": "lost_start", "end": "lost_end"}
    is_in = "lost_topic = topic and lost_partition = partition and offset >= lost_start"
    is_before = "(lost_end < 0 or offset < lost_end)"
    explained = missing.join(F.broadcast(losses.withColumnsRenamed(names)), F.expr(f"{is_in} and {is_before}"), "left")
    sought = explained.groupBy(*PLACE, "offset", "lead_broker", "is_other", "held").agg(
        F.expr("max(struct(certainty, cause)) as loss"), F.expr("count(lost_topic) as entries")
    )
    stands = "if(is_other, 'another record is there', 'no record is there')"
    others = "if(size(held) > 0, concat('; broker ', concat_ws(', ', held), ' has it'), '')"
    led = said("in the log of broker %d, the latest leader, %s%s", "lead_broker", stands, others)
    where = f"if(lead_broker is null, 'no replica of the partition was read', {led})"
    recorded = f"concat({where}, '; recorded in the loss ledger: ', loss.cause)"
    place = {"offset": "offset", "end": "offset + 1", "broker": "null"}
    return found(
        sought,
        case("entries > 0", "acknowledged-lost-recorded", recorded, **place),
        case("entries = 0 and size(held) = 0", "acknowledged-lost", where, **place),
        case("entries = 0 and size(held) > 0", "acknowledged-not-led", where, **place),
    )
