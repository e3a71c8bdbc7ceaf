"""Transcripts of the two machines of a partition: what a leader decides, what a follower does with answers."""

from pathlib import Path
from typing import Any

import pytest
from tests.datadriven import run
from tests.unit.replica.disk import DictDisk
from tests.unit.replica.noted import Noted

from strandline.base.effects import Endpoint
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSET_MAX, ZERO_UUID, BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch
from strandline.base.time import Instant
from strandline.log.config import LogConfig
from strandline.log.log import Log
from strandline.metadata.image import Broker, Partition
from strandline.replica.hosting.follower import Follower, Served
from strandline.replica.hosting.isr import Committed, PendingExpand
from strandline.replica.hosting.leader import Cluster, Leader
from strandline.wire.batch import build

SCRIPTS = Path(__file__).parents[2] / "scripts" / "replica"


def a_log() -> Log:
    disk = DictDisk()
    disk.make_directory("/log")
    return Log.open(disk, "/log", LogConfig(), Instant(0), clean=True, recovery_point=0, log_start_offset=0)


def a_batch(count: int, base: int = 0, epoch: int = -1) -> memoryview:
    return memoryview(bytearray(build([(0, None, b"v", ())] * count, base_offset=base, leader_epoch=epoch)))


def ids(text: str) -> tuple[NodeId, ...]:
    return tuple(NodeId(int(word)) for word in text.split(",") if word)


class LeaderScript:
    """Broker 1 leads; `at=` is milliseconds since the script's start, and stays until the next."""

    def __init__(self) -> None:
        self.cluster = Cluster(NodeId(1))
        self.cluster.broker_epoch = BrokerEpoch(11)
        self.brokers = {NodeId(n): self.broker(n, 10 + n) for n in (1, 2, 3)}
        self.cluster.brokers = self.brokers
        self.log = a_log()
        self.now = Instant(1_000_000)
        self.leader: Leader | None = None
        self.pending: Any = None

    def broker(self, node: int, epoch: int, fenced: bool = False) -> Broker:
        endpoints = {"PLAINTEXT": Endpoint("h", node)}
        return Broker(NodeId(node), ZERO_UUID, BrokerEpoch(epoch), endpoints, fenced=fenced)

    def partition(self, args: dict[str, str]) -> Partition:
        replicas = ids(args.get("replicas", "1,2,3"))
        return Partition(
            replicas=replicas,
            directories=(ZERO_UUID,) * len(replicas),
            isr=ids(args["isr"]),
            leader=NodeId(1),
            leader_epoch=LeaderEpoch(int(args.get("epoch", 0))),
            partition_epoch=PartitionEpoch(int(args.get("partition_epoch", 0))),
        )

    def perform(self, verb: str, args: dict[str, str]) -> str:
        if "at" in args:
            self.now = Instant(1_000_000 + int(args["at"]))
        if verb == "lead":
            self.leader = Leader(
                self.cluster,
                self.log,
                self.partition(args),
                high_watermark=int(args.get("hw", 0)),
                min_isr=int(args.get("min_isr", 1)),
                lag_time_max_ms=30_000,
                now=self.now,
            )
            self.leader.advance(self.now)
            return self.show()
        leader = self.leader
        assert leader is not None
        note = ""
        match verb:
            case "append":
                leader.stamp_caught_up()
                leader.log.append_as_leader(a_batch(int(args["records"])), leader.epoch, self.now)
            case "fetch":
                node = NodeId(int(args["by"]))
                self.cluster.fetched_at[node] = self.now
                epoch = int(args.get("broker_epoch", 10 + node))
                error = leader.fetched(node, int(args["offset"]), 0, epoch, self.now)
                note = f"{error.name}\n" if error else ""
            case "expand":
                node = NodeId(int(args["by"]))
                why = leader.why_not_in_sync(node, self.now)
                note = f"no: {why}\n" if why else ""
                self.pending = leader.propose_expansion(node, self.now) or self.pending
            case "shrink":
                self.pending = leader.propose_shrink(self.now) or self.pending
            case "agreed":
                leader.committed(ids(args["isr"]), PartitionEpoch(int(args["partition_epoch"])))
            case "refused":
                leader.refused(self.pending)
            case "metadata":
                leader.reassigned(self.partition(args), int(args.get("min_isr", leader.min_isr)))
            case "register":
                node = int(args["broker"])
                self.brokers[NodeId(node)] = self.broker(node, int(args["epoch"]), "fenced" in args)
            case "time":
                pass
            case _:
                raise AssertionError(verb)
        leader.advance(self.now)
        leader.check()
        return note + self.show()

    def show(self) -> str:
        leader = self.leader
        assert leader is not None
        kind = {Committed: ""}.get(type(leader.isr), " pending")
        wants = ""
        if not isinstance(leader.isr, Committed):
            what = "expand" if isinstance(leader.isr, PendingExpand) else "shrink"
            wants = f" {what} to {' '.join(f'{n}@{e}' for n, e in leader.isr.proposal)}"
        isr = ",".join(map(str, leader.isr.isr))
        return f"hw={leader.high_watermark} end={leader.log.log_end_offset} isr={isr}{kind}{wants}"


class FollowerScript:
    def __init__(self) -> None:
        self.log = a_log()
        self.follower: Follower | None = None
        self.asked: Any = None

    def perform(self, verb: str, args: dict[str, str]) -> str:
        if verb == "own":  # records that it has from an earlier leader, or its own leadership
            self.log.append_as_follower(
                a_batch(int(args["records"]), self.log.log_end_offset, int(args["epoch"])), LeaderEpoch(99)
            )
            return f"end={self.log.log_end_offset}"
        if verb == "deleted":  # DeleteRecords: what is below lies there until its segment goes
            self.log.advance_log_start(int(args["to"]))
            return f"start={self.log.log_start_offset}"
        if verb == "follow":
            partition = Partition(
                replicas=ids("1,2"),
                directories=(ZERO_UUID,) * 2,
                isr=ids("1,2"),
                leader=NodeId(2),
                leader_epoch=LeaderEpoch(int(args["epoch"])),
            )
            before = 0 if self.follower is None else self.follower.high_watermark
            self.follower = Follower("t-0", self.log, partition, int(args.get("hw", before)), Noted())
            return self.show()
        follower = self.follower
        assert follower is not None
        if verb == "ask":
            self.asked = follower.position()
            return (
                f"offset={self.asked.offset} last_fetched_epoch={self.asked.last_fetched_epoch}"
                f" leader_epoch={self.asked.leader_epoch}"
            )
        assert verb == "answer", verb
        records = None
        if "records" in args:
            base = int(args.get("base", self.asked.offset))
            records = a_batch(int(args["records"]), base, int(args.get("epoch", self.asked.leader_epoch)))
        diverging, _, end = args.get("diverging", "-1:-1").partition(":")
        answer = Served(
            ErrorCode[args.get("error", "NONE")],
            int(args.get("hw", -1)),
            int(args.get("start", 0)),
            int(diverging),
            int(end),
            records,
        )
        went = follower.served(self.asked, answer, Instant(0))
        follower.check()
        return "\n".join([went.name, *follower.take_losses(), self.show()])

    def show(self) -> str:
        follower = self.follower
        assert follower is not None
        log = follower.log
        return f"hw={follower.high_watermark} start={log.log_start_offset} end={log.log_end_offset}"


MACHINES = {"leader": LeaderScript, "follower": FollowerScript}


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(path: Path, rewrite: bool) -> None:
    run(path, MACHINES[path.stem.partition("_")[0]]().perform, rewrite)


def test_a_leader_that_begins_where_no_log_can_begin_cuts_nothing() -> None:
    follower = Follower.__new__(Follower)
    assert follower.cut_by(Served(ErrorCode.OFFSET_OUT_OF_RANGE, log_start_offset=OFFSET_MAX)) is not None
    for offset in (-1, OFFSET_MAX + 1):
        assert follower.cut_by(Served(ErrorCode.OFFSET_OUT_OF_RANGE, log_start_offset=offset)) is None
