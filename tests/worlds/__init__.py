"""The small clusters of real processes that tests share: one node, and three.

One worker of pytest starts each of them for the first test that asks, and so does a worker with a Spark session. A
test has its topics, groups and transactional ids to itself there, and stops, pauses or kills no node: a test that does
starts a cluster of its own.
"""

from collections.abc import Iterator

import pytest

from strandline.metadata.configs.node_configs import STANDARD_AUTHORIZER
from strandline.testing.local_cluster import LocalCluster

QUICK = {
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "offsets.topic.num.partitions": "5",
    "replica.lag.time.max.ms": "1500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
EAGER = {
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.flush.offset.checkpoint.interval.ms": "100",
}
PREPARING = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "transaction.two.phase.commit.enable": "true",
}

# Clients have no names there, so all may do everything; and every request passes the authorizer.
AUTHORIZED = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="session")
def one_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Its cleaner is always at work, and what it has flushed counts at once. Clients may prepare transactions, and it
    looks often for those whose time is up. It has an authorizer."""
    with LocalCluster(tmp_path_factory.mktemp("one"), 1, properties=EAGER | PREPARING | AUTHORIZED) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One node with TLS, SASL and ACLs. `cluster.client` is its super user; alice may use what begins with alice-."""
    with LocalCluster(tmp_path_factory.mktemp("secured"), 1, properties=PREPARING, is_secure=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def three_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("three"), 3, properties=QUICK) as cluster:
        yield cluster
