"""What the console knows of its cluster, and what is asked for it: one source for each kind of fact."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from strandline.base.value import Value
from strandline.client.admin.loss_ledger import Ledger, ask_ledger
from strandline.client.admin.partitions import PartitionState, Place, describe_partitions
from strandline.client.admin.quorum import Quorum, describe_quorum
from strandline.client.admin.replica_logs import LogReport, ask_replicas
from strandline.client.admin.replicas.reassignments import Move, list_moves
from strandline.client.brokers import BrokerAt, brokers_in, brokers_of, describe_cluster
from strandline.client.config import ClientConfig
from strandline.console.asking.groups import Groups, ask_groups
from strandline.console.asking.logs import LogEnds, Sizes, ask_ends, ask_sizes
from strandline.console.asking.metrics import Metrics, ask_metrics
from strandline.console.asking.transactions import Transactions, ask_transactions
from strandline.console.chronicle import Chronicle
from strandline.wire.messages.cluster.describe_cluster import DescribeClusterResponse

LOGS_MAX = 200  # partitions whose replicas are asked for their logs at once


class Facts(Value, frozen=True):
    """Everything is as it was when it was asked last; empty or None if it was never."""

    cluster: DescribeClusterResponse | None = None
    quorum: Quorum | None = None
    partitions: tuple[PartitionState, ...] = ()
    logs: Mapping[Place, tuple[LogReport, ...]] = {}
    ledger: Ledger | None = None
    ends: LogEnds = LogEnds()
    sizes: Sizes = Sizes()
    groups: Groups | None = None
    moves: tuple[Move, ...] | None = None
    transactions: Transactions | None = None
    metrics: Metrics = Metrics()


class Source(Value, frozen=True):
    """One kind of fact. `ask` may wait for brokers. It raises StrandlineError or OSError if none answers."""

    name: str  # of the field of Facts
    ask: "Callable[[Observed], Any]"
    every_s: float  # while a browser shows something that is made of it
    idle_s: float | None = None  # while none does; None: not at all


class Observed:
    """The cluster that the console shows: how it is reached, and what is known of it."""

    def __init__(self, config: ClientConfig, options: str = "") -> None:
        """`options`: what a command needs to reach it, for the commands that the console shows."""
        self.given = config
        self.options = options
        self.facts = Facts()
        self.chronicle = Chronicle()
        self.watched: frozenset[Place] = frozenset()  # partitions whose logs a browser shows

    @property
    def config(self) -> ClientConfig:
        """With all brokers that are known to run, so that it is reached also if the given ones are down."""
        brokers = [(broker.host, broker.port) for broker in self.brokers.values() if not broker.is_fenced]
        return replace(self.given, bootstrap=tuple(dict.fromkeys((*brokers, *self.given.bootstrap))))

    @property
    def brokers(self) -> dict[int, BrokerAt]:
        return {} if self.facts.cluster is None else brokers_in(self.facts.cluster, self.given)

    def learn(self, name: str, value: Any) -> None:
        self.facts = replace(self.facts, **{name: value})
        if name == "partitions":
            self.chronicle.note(int(time.time() * 1000), value)


def ask_logs(observed: Observed) -> dict[Place, tuple[LogReport, ...]]:
    states = [state for state in observed.facts.partitions if state.at in observed.watched and state.is_of_our_own]
    return ask_replicas(states[:LOGS_MAX], observed.brokers)


def brokers(observed: Observed) -> dict[int, BrokerAt]:
    return observed.brokers or brokers_of(observed.config)


def ask_log_ends(observed: Observed) -> LogEnds:
    facts = observed.facts
    states = facts.partitions or tuple(describe_partitions(observed.config))
    return ask_ends(brokers(observed), states, facts.ends, now_ms())


def ask_lags(observed: Observed) -> Groups:
    facts = observed.facts
    return ask_groups(brokers(observed), facts.ends.offsets, facts.groups or Groups(), now_ms())


def now_ms() -> int:
    return int(time.time() * 1000)


SOURCES = (
    Source("cluster", lambda observed: describe_cluster(observed.config), 1.0, 5.0),
    Source("quorum", lambda observed: describe_quorum(observed.config), 1.0, 5.0),
    Source("partitions", lambda observed: tuple(describe_partitions(observed.config)), 1.0, 5.0),
    Source("logs", ask_logs, 0.5),
    Source("ledger", lambda observed: ask_ledger(brokers(observed)), 3.0, 15.0),
    Source("ends", ask_log_ends, 2.0, 10.0),
    Source("sizes", lambda observed: ask_sizes(brokers(observed), observed.facts.sizes, now_ms()), 3.0),
    Source("groups", ask_lags, 2.0, 10.0),
    Source("moves", lambda observed: tuple(list_moves(observed.config)), 1.0),
    Source("transactions", lambda observed: ask_transactions(brokers(observed)), 2.0),
    Source("metrics", lambda observed: ask_metrics(observed.config, observed.facts.metrics, now_ms()), 2.0, 10.0),
)
