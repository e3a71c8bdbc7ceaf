"""Samples of a live cluster: who reads what, how far, and how old the next record is.

The ends are asked for after the positions: a reader that is quick shows no lag that never was, one at the end shows a
lag of what came meanwhile at most. What does not answer is left out and reported (`trouble.py`), since lag is looked at
most when something is down.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from strandline.client.cluster import Cluster
from strandline.client.errors import KafkaError, refused
from strandline.wire.messages.groups.list_groups import ListGroupsRequest
from strandline_spark.jobs.lag.delays import Delays
from strandline_spark.jobs.lag.ends import ends_of
from strandline_spark.jobs.lag.positions import Positions
from strandline_spark.jobs.lag.queries import progress_of
from strandline_spark.jobs.lag.samples import GROUP, QUERY, TOPIC, Ends, Sample, sampled
from strandline_spark.jobs.lag.trouble import Trouble, is_passing

Partition = tuple[str, int]


class Reader:
    """One group or query at one time."""

    def __init__(self, kind: str, name: str, positions: Positions, batch: int | None = None) -> None:
        self.kind = kind
        self.name = name
        self.positions = positions
        self.batch = batch


class Sampler:
    """What is watched. `groups`: None for all that there are; `queries`: name -> checkpoint folder; `topics`: watched
    also where nobody reads them, and only these if `groups` and `queries` name no others."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        groups: Sequence[str] | None = (),
        queries: Mapping[str, str] | None = None,
        topics: Sequence[str] = (),
        isolation: int = 0,
        commit_to: str | None = None,
        notify: Callable[[str], None] = lambda sentence: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.cluster = cluster
        self.groups = groups
        self.queries = dict(queries or {})
        self.topics = tuple(topics)
        self.isolation = isolation
        self.commit_to = commit_to  # a group to which the positions of the queries are committed
        self.clock = clock
        self.notify = notify  # what a sample lacks, when it begins to
        self.delays = Delays(cluster, isolation)
        self.lacking: Mapping[str, str] = {}  # what the last sample lacks -> a sentence about it
        self.is_first = True

    def sample(self) -> list[Sample]:
        """One sample of each reader and partition, and one of each watched partition. Raises StrandlineError."""
        trouble = Trouble(strict=self.is_first)
        readers = list(self.readers(trouble))
        topics = sorted({topic for reader in readers for topic, _ in reader.positions} | set(self.topics))
        views = self.cluster.topics(topics)
        ends = ends_of(self.cluster, views, self.isolation, trouble)
        self.delays.begin({name: view.topic_id for name, view in views.items()}, trouble)
        now = int(self.clock() * 1000)
        made = [sampled(now, TOPIC, "", topic, partition, ends[topic, partition], None) for topic, partition in ends]
        for reader in readers:
            made += self.of_reader(reader, ends, now)
        for what, sentence in trouble.lacking.items():
            if what not in self.lacking:
                self.notify(sentence)
        self.lacking, self.is_first = trouble.lacking, False
        return made

    def readers(self, trouble: Trouble) -> Iterator[Reader]:
        for group in group_names(self.cluster, trouble) if self.groups is None else self.groups:
            with trouble.without(f"no sample of group {group}"):
                committed = self.cluster.offset_fetch(group, patience_ms=trouble.patience_ms)
                yield Reader(GROUP, group, {at: row.offset for at, row in committed.items() if row.offset >= 0})
        for name, checkpoint in self.queries.items():
            with trouble.without(f"no sample of query {name}"):
                progress = progress_of(checkpoint)
                yield Reader(QUERY, name, progress.done, progress.batch)
                if self.commit_to is None:
                    continue
                with trouble.without(f"no offset is committed to group {self.commit_to}"):
                    commit_progress(self.cluster, self.commit_to, progress.done, trouble.patience_ms)

    def of_reader(self, reader: Reader, ends: Mapping[Partition, Ends], now: int) -> Iterator[Sample]:
        own = {topic for topic, _ in reader.positions}
        for (topic, partition), end in ends.items():
            if topic not in own:
                continue
            position = reader.positions.get((topic, partition))
            sample = sampled(now, reader.kind, reader.name, topic, partition, end, position)
            delay = None
            if position is not None:
                first = max(position, end.log_start_offset)
                delay = self.delays.of((topic, partition), first, end.end_offset, now)
            yield replace(sample, delay_ms=delay, batch=reader.batch)


def group_names(cluster: Cluster, trouble: Trouble) -> list[str]:
    """All groups of consumers, on all brokers that answer: of one that is dead, others have the groups soon."""
    found: dict[str, None] = {}
    for broker in sorted(cluster.brokers()):
        with trouble.without(f"no groups of broker {broker}"):
            answer = cluster.ask(broker, ListGroupsRequest())
            if answer.error_code:
                raise refused(answer.error_code, f"broker {broker} does not list its groups")
            found |= {group.group_id: None for group in answer.groups if group.protocol_type in ("consumer", "")}
    return sorted(found)


def commit_progress(cluster: Cluster, group: str, positions: Positions, patience_ms: int | None = None) -> None:
    """Let a group's committed offsets be these, so that tools which show groups show the query. Nobody may be a member
    of the group. Raises KafkaError."""
    if positions:
        try:
            cluster.offset_commit(group, dict(positions), patience_ms=patience_ms)
        except KafkaError as error:
            if is_passing(error):
                raise
            raise KafkaError(error.code, error.problem, COMMIT_ADVICE) from None


COMMIT_ADVICE = "use a group that has no members: a name of its own"
