"""A listener for notebooks and jobs: every finished batch of a session's streaming queries becomes samples of lag.

    listener = LagListener("localhost:9092", file="lag.jsonl", group="orders-query")
    spark.streams.addListener(listener)
    …
    listener.samples          # the last ones
    frame_of(spark, listener.samples)

It knows only what the progress says: positions, and the ends that the source saw last (`latestOffset`). With `group`
the positions are committed to a consumer group too, so that tools which show groups show the query. A failure of that
is reported once, as a warning, and never stops the query.
"""

import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.lag.positions import Positions, positions_in
from strandline_spark.jobs.lag.samples import QUERY, Ends, Sample, append, sampled
from strandline_spark.jobs.lag.sampling import commit_progress
from strandline_spark.jobs.lag.trouble import LIMIT_MS

KEPT = 100_000


class LagListener(StreamingQueryListener):
    """`options`: more `kafka.*` options. `group`: "{query}" in it becomes the query's name or id. Without
    `bootstrap_servers` nothing is committed."""

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        *,
        options: Mapping[str, str] | None = None,
        file: str | None = None,
        group: str | None = None,
        kept: int = KEPT,
    ) -> None:
        if group is not None and bootstrap_servers is None:
            raise StrandlineError("offsets cannot be committed without a cluster", "give bootstrap_servers too")
        self.config = (
            ClientConfig.of({**(options or {}), "kafka.bootstrap.servers": bootstrap_servers})
            if bootstrap_servers is not None
            else None
        )
        self.file = Path(file) if file is not None else None
        self.group = group
        self.samples: deque[Sample] = deque(maxlen=kept)
        self.failure: str | None = None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # PySpark's name
        """Nothing has been read yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # PySpark's name
        progress = event.progress
        name = progress.name or str(progress.id)
        time_ms = int(datetime.fromisoformat(progress.timestamp.replace("Z", "+00:00")).timestamp() * 1000)
        made, positions = samples_of(name, time_ms, progress.batchId, progress.sources)
        self.samples.extend(made)
        failures = []
        attempts: list[Callable[[], None]] = [lambda: self.write(made), lambda: self.commit(name, positions)]
        for attempt in attempts:
            try:
                attempt()
            except (StrandlineError, OSError) as error:  # commit even if the file cannot be written
                failures.append(str(error))
        if failures:
            self.notify(f"the lag of query {name} is unknown: {'; '.join(failures)}")
        else:
            self.failure = None

    def write(self, samples: Sequence[Sample]) -> None:
        if self.file is not None and samples:
            append(self.file, samples)

    def commit(self, name: str, positions: Positions) -> None:
        if self.group is not None and self.config is not None and positions:
            with Cluster(self.config) as cluster:
                commit_progress(cluster, self.group.replace("{query}", name), positions, LIMIT_MS)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802  # PySpark's name
        """The last progress still holds."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  # PySpark's name
        """All that it did was reported."""

    def notify(self, failure: str) -> None:
        if self.failure is None:
            warnings.warn(failure, RuntimeWarning, stacklevel=2)
        self.failure = failure


def samples_of(name: str, time_ms: int, batch: int, sources: Any) -> tuple[list[Sample], Positions]:
    """What one progress says of its sources that read topics: samples, and the positions behind the batch."""
    made: list[Sample] = []
    positions: Positions = {}
    for source in sources:
        done = positions_in(source.endOffset)
        latest = positions_in(source.latestOffset)
        for (topic, partition), position in sorted(done.items()):
            end = max(position, latest.get((topic, partition), position))
            sample = sampled(time_ms, QUERY, name, topic, partition, Ends(0, end), position)
            made.append(replace(sample, batch=batch))
        positions |= done
    return made, positions
