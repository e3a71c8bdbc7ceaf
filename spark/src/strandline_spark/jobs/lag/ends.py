"""Where partitions begin and end. A partition without a leader, or with a silent one, is left out and told of; a topic
that is deleted meanwhile is left out."""

from collections.abc import Mapping, Sequence

from strandline.client.cluster import EARLIEST, LATEST, Cluster, TopicView
from strandline.client.errors import UnknownTopic
from strandline_spark.jobs.lag.samples import Ends
from strandline_spark.jobs.lag.trouble import Trouble

NAMED_MAX = 10  # partitions in a sentence
Partition = tuple[str, int]


def ends_of(
    cluster: Cluster, views: Mapping[str, TopicView], isolation: int, trouble: Trouble
) -> dict[Partition, Ends]:
    """In the order of topics and partitions. Leader by leader, so that one that is silent hides no other's."""
    led: dict[int, list[Partition]] = {}
    for topic, view in sorted(views.items()):
        for number in sorted(view.partitions):
            led.setdefault(view.partitions[number].leader, []).append((topic, number))
    found: dict[Partition, Ends] = {}
    for leader, partitions in sorted(led.items()):
        what = names_of(partitions)
        if leader < 0:
            where = ":".join(map(str, partitions[0]))
            trouble.lacking[what] = f"no sample of {what}: no leader now; `strandline explain {where}` says why"
            continue
        with trouble.without(f"no sample of {what} (broker {leader})"):
            found |= ends_at_leader(cluster, partitions, isolation, trouble)
    return dict(sorted(found.items()))


def ends_at_leader(
    cluster: Cluster, partitions: Sequence[Partition], isolation: int, trouble: Trouble
) -> dict[Partition, Ends]:
    left = list(partitions)
    while left:
        try:
            starts, latest = (
                cluster.list_offsets(dict.fromkeys(left, edge), isolation, patience_ms=trouble.patience_ms)
                for edge in (EARLIEST, LATEST)
            )
            return {at: Ends(starts[at].offset, latest[at].offset) for at in left}
        except UnknownTopic as error:
            if cluster.topics([error.topic]):
                trouble.lacking[error.topic] = f"no sample of {error.topic}: its leader has not loaded it yet"
            left = [at for at in left if at[0] != error.topic]
    return {}


def names_of(partitions: Sequence[Partition]) -> str:
    named = ", ".join(f"{topic}-{number}" for topic, number in partitions[:NAMED_MAX])
    more = len(partitions) - NAMED_MAX
    return f"{named} and {more} more" if more > 0 else named
