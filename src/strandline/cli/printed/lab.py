"""Measurements, simulations and demonstrations."""

from typing import Annotated, NotRequired, TypedDict

from strandline.bench.cold import ColdMeasured
from strandline.bench.load import Latency, LoadConfig, Measured
from strandline.bench.requests import RequestsMeasured
from strandline.bench.scale_steps import Scaled
from strandline.bench.transactions import Transacted
from strandline.bench.usage import Usage
from strandline.cli.printed.words import says
from strandline.demo.exactly_once.count import Count
from strandline.demo.exactly_once.play import Event, Wish
from strandline.demo.last_replica.story import Story

Percentiles = Annotated[list[float], says("which percentiles a latency has")]
Ratio = Annotated[float | None, says("of the first cluster to --peer, the median of the rounds")]


class Benched(TypedDict):
    """Throughput and latency. Latencies are in milliseconds."""

    config: LoadConfig
    percentiles: Percentiles
    results: list[Measured]
    ratio: NotRequired[Ratio]


class BenchedCold(TypedDict):
    """The latency of a producer, alone and beside a reader of old records."""

    percentiles: Percentiles
    results: list[ColdMeasured]


class ConnectionsOf(TypedDict):
    """Connections to one cluster."""

    bootstrap: str
    count: int
    errors: list[str]
    per_second: float
    latency: Latency | None
    processes: list[Usage]


class BenchedConnections(TypedDict):
    """Handshakes and logins."""

    percentiles: Percentiles
    results: list[ConnectionsOf]
    ratio: NotRequired[Ratio]


class BenchedRequests(TypedDict):
    """Produce requests of one record each."""

    percentiles: Percentiles
    results: list[RequestsMeasured]
    ratio: NotRequired[Ratio]


class BenchedTransactions(TypedDict):
    """Commits of transactions."""

    results: list[Transacted]
    ratio: NotRequired[Ratio]


class BenchedScale(TypedDict):
    """What partitions cost."""

    results: list[Scaled]
    growth: Annotated[dict[str, float | None], says("by step: 1 is linear in the number of partitions, 2 quadratic")]


class LeaderKill(TypedDict):
    """A leader was killed under load."""

    acknowledged: int
    read: int
    lost: Annotated[list[list[int]], says("partition and offset")]
    duplicates: int
    misplaced: Annotated[list[list[int]], says("partition and offset")]
    unacknowledged: int
    interruption_s: Annotated[float, says("the longest gap between acknowledgements of a partition that it led")]
    killed_node: int
    leaders_before: Annotated[dict[str, list[int]], says("by partition: leader and leader epoch")]
    leaders_after: dict[str, list[int]]
    healed_s: Annotated[float, says("from the restart until all replicas were in sync")]
    logs_equal: bool
    bytes_compared: int
    holds: Annotated[bool, says("nothing acknowledged was lost, and the logs are equal")]


class LastReplica(TypedDict):
    """The last replica loses power."""

    elr_off: Story
    elr_on: Story
    holds: bool


class ExactlyOnce(TypedDict):
    """A bank's money is moved in transactions, and without."""

    wish: Wish
    seconds: float
    events: list[Event]
    with_transactions: Count
    without: Count
    aborted: int
    taken_back: int
    all_ended: bool
    holds: bool


class Explored(TypedDict):
    """What an exhaustive exploration found."""

    limits: Annotated[str, says("what is in the model")]
    states: int
    transitions: int
    depth: int
    seconds: float
    counterexample: Annotated[list[str] | None, says("the shortest way to a state in which a law is broken")]


class ExploredPartition(Explored):
    """One exploration of a partition."""

    brokers: int
    min_isr: int
    elr: bool
    managed: bool
    directories: bool


class ExploredTransactions(Explored):
    """One exploration of the transaction coordinator."""

    version: int
    two_phase: bool
    starts: int
    bumps: int
    transactions: int
    failovers: int
    timeouts: int
    late: int
    losses: int
    refusals: int
    epoch: int
