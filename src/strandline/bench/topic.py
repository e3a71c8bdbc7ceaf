"""A topic that a bench makes for itself, and deletes."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from strandline.client.admin.topics import create_topic, delete_topics
from strandline.client.ask import Servers


def topic_name() -> str:
    return f"strandline-bench-{uuid.uuid4().hex[:8]}"


@contextmanager
def bench_topic(cluster: Servers, partitions: int, replication_factor: int) -> Iterator[str]:
    """Its name. Raises StrandlineError if it cannot be created or deleted."""
    name = topic_name()
    create_topic(cluster, name, partitions, replication_factor)
    try:
        yield name
    finally:
        delete_topics(cluster, [name])
