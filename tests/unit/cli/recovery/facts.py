"""Situations of a partition, and what is read of a verdict."""

from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.replica_logs import LogReport, ReplicaLog, Unasked
from strandline.client.brokers import BrokerAt
from strandline.diagnosis.explaining import judge
from strandline.diagnosis.situation import (
    Facts,
    Finding,
)

BROKERS = {node: BrokerAt(node, "h", 9000 + node) for node in (1, 2, 3)}
DOWN = "does not run: nobody listens at h:1"
ALL = (1, 2, 3)


def leaderless(
    isr: tuple[int, ...] = (),
    elr: tuple[int, ...] = (),
    known: tuple[int, ...] = (),
    *,
    strategy: str = "Balanced",
    managed: bool = True,
    down: tuple[int, ...] = (),
    last: int = -1,
    logs: dict[int, tuple[int, int, int]] | None = None,
    registered: tuple[int, ...] = ALL,
) -> Facts:
    """`logs`: (last epoch, end offset, high watermark); the others that are not down say nothing."""
    logs = {node: (4, 10 * node, 10) for node in ALL if node not in down} if logs is None else logs
    reports: list[LogReport] = []
    for node in ALL:
        if node in logs:
            reports.append(ReplicaLog(node, *logs[node], current_epoch=5))
        else:
            reports.append(Unasked(node, DOWN if node in down else "says nothing"))
    state = PartitionState(
        Place("t", 0),
        ALL,
        isr,
        -1,
        5,
        elr,
        known,
        last,
        down,
        min_isr=2,
        partition_epoch=9,
        strategy=strategy,
        is_managed=managed,
    )
    return Facts(state, {node: BROKERS[node] for node in registered}, tuple(reports))


def one(facts: Facts) -> Finding:
    (finding,) = judge(facts)
    return finding


def commands(finding: Finding) -> list[str]:
    return [way.command.removeprefix("strandline ") for way in finding.ways]


def costs(finding: Finding, start: str) -> list[str]:
    return [way.costs for way in finding.ways if way.command.removeprefix("strandline ").startswith(start)]


ELECT = "leader-election --election-type"
AT = "--topic t --partition 0"
