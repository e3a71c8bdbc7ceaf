"""Clusters that live as long as a session of tests, and what each test has of them to itself.

Nodes are started for the first test that wants such nodes, and serve all others. A test has names with a prefix of its
own, so nothing needs to be deleted. Only with `exact_names` are its topics and groups deleted at its end.
"""

import re
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any

from strandline.client.admin.groups.states import coordinators_of, delete_groups, list_groups
from strandline.client.brokers import brokers_of
from strandline.client.errors import StrandlineError
from strandline.testing.clusters import Cluster, started
from strandline.testing.health import NotSo, anybody
from strandline.testing.relayed_cluster import RelayedCluster
from strandline.testing.secured import PREFIX

NAME_MAX = 60
LINES = 60  # of each node's log that a report shows
Kind = tuple[int, bool, tuple[tuple[str, str], ...]]


class TestCluster(Cluster):
    """What one test has of the nodes."""

    __test__ = False  # pytest would take it for a test

    def __init__(self, nodes: RelayedCluster, prefix: str) -> None:
        super().__init__(nodes, prefix)
        self.log_sizes = {node.node_id: size_of(node.log_path) for node in nodes.relayed}
        self.known_groups = set() if prefix else set(self.groups())

    def groups(self) -> list[str]:
        """All groups of the cluster."""
        brokers = brokers_of(anybody(self.nodes))
        return [row.group_id for row in list_groups(brokers)[0]]

    def sections(self) -> list[tuple[str, str]]:
        """For the report of a failed test: what is not healthy, and what the nodes logged meanwhile."""
        found = []
        why = self.why_not_healthy()
        if why:
            found.append(("the cluster is not healthy", why))
            with suppress(StrandlineError, NotSo, OSError):
                found.append(("strandline explain", self.explain()))
        for node in self.nodes.relayed:
            new = node.log_path.read_bytes()[self.log_sizes[node.node_id] :].decode(errors="replace")
            found.append((f"log of node {node.node_id}", "\n".join(new.splitlines()[-LINES:])))
        return [(title, text) for title, text in found if text]

    def leave(self) -> None:
        """The nodes are as they were before the test."""
        self.end_rules()
        if self.is_disturbed or not all(node.answers for node in self.nodes.relayed):
            self.heal()
        if not self.prefix:
            self.delete_all()

    def delete_all(self) -> None:
        """Topics and groups that this test created; not a group that still has members."""
        brokers = brokers_of(anybody(self.nodes))
        new = [group for group in self.groups() if group not in self.known_groups]
        where = {group: node for group, node in coordinators_of(anybody(self.nodes), new).items() if node in brokers}
        delete_groups(brokers, where)
        if names := self.topics():
            self.delete_topics(*names)


class Session:
    """The clusters of one process of pytest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clusters: dict[Kind, RelayedCluster] = {}
        self.numbers = count(1)

    def cluster(
        self, test: str, *, nodes: int, config: Mapping[str, Any] | None, secure: bool, exact_names: bool
    ) -> TestCluster:
        """For one test, on nodes that were started for it or before."""
        properties = {key: str(value) for key, value in (config or {}).items()}
        kind = (nodes, secure, tuple(sorted(properties.items())))
        if kind not in self.clusters:
            self.clusters[kind] = started(self.folder / f"cluster-{len(self.clusters) + 1}", nodes, properties, secure)
        prefix = "" if exact_names else prefix_of(test, next(self.numbers))
        return TestCluster(self.clusters[kind], f"{PREFIX}{prefix}" if secure and prefix else prefix)

    def close(self) -> None:
        with ExitStack() as ending:
            for cluster in self.clusters.values():
                ending.callback(cluster.close)


def prefix_of(test: str, number: int) -> str:
    """A test runs again, and with other parameters: the number is its own each time."""
    return f"{re.sub('[^A-Za-z0-9-]+', '-', test)[:NAME_MAX].strip('-')}-{number}-"


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
