"""The controller's transcripts: what it writes to the log and what it answers, situation by situation."""

from pathlib import Path
from typing import Any

import pytest
from tests.datadriven import run
from tests.unit.controller.cluster import Cluster

from strandline.base.effects import Failure, Probe
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.metadata import records as r
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest

SCRIPTS = Path(__file__).parents[2] / "scripts" / "controller"
OUTCOMES = {"refused": Failure.REFUSED, "timed-out": Failure.TIMED_OUT, "accepted": None}


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(path: Path, rewrite: bool) -> None:
    run(path, Play().perform, rewrite)


class Play:
    """Performs a script's commands on a cluster without Eligible Leader Replicas, and shows every record, probe and
    answer that they cause."""

    def __init__(self) -> None:
        self.cluster = Cluster(elr=False)
        self.shown = self.cluster.log.next_offset
        self.probes: dict[int, Probe] = {}

    def perform(self, verb: str, words: dict[str, str]) -> str:
        answer = getattr(self, verb)(**words)
        lines = []
        log = self.cluster.log
        while self.shown < log.next_offset:
            lines.append(f"@{self.shown} {show(log.records[self.shown - log.start])}")
            self.shown += 1
        for probe in self.cluster.probes():
            node = probe.token.broker
            self.probes[node] = probe
            lines.append(f"probe broker {node}")
        return "\n".join([*lines, *([answer] if answer else [])])

    def register(self, broker: str, previous: str = "-1", life: str = "") -> str:
        answer = self.cluster.register(int(broker), int(previous), int(life) if life else None)
        return f"-> epoch {answer.broker_epoch}" if not answer.error_code else f"-> {ErrorCode(answer.error_code).name}"

    def beat(self, broker: str, want: str = "", offset: str = "", epoch: str = "") -> str:
        if epoch:
            stale = BrokerHeartbeatRequest(broker_id=int(broker), broker_epoch=int(epoch))
            return f"-> {ErrorCode(self.cluster.ask(stale).error_code).name}"
        answer = self.cluster.beat(int(broker), "fence" in want, "shutdown" in want, int(offset) if offset else None)
        if answer.error_code:
            return f"-> {ErrorCode(answer.error_code).name}"
        words = ["fenced" if answer.is_fenced else "unfenced", "" if answer.is_caught_up else "behind"]
        return "-> " + ", ".join(w for w in [*words, "should shut down" if answer.should_shut_down else ""] if w)

    def create(self, topic: str, replicas: str) -> None:
        self.cluster.create(topic, *(tuple(int(n) for n in part.split(",")) for part in replicas.split("/")))

    def alter(self, topic: str, isr: str) -> str:
        answer = self.cluster.alter(topic, tuple(int(n) for n in isr.split(",")))
        return f"-> {ErrorCode(answer.error_code).name}, partition epoch {answer.partition_epoch}"

    def wait(self, ms: str) -> None:
        self.cluster.wait(int(ms))

    def disconnect(self, broker: str) -> None:
        self.cluster.disconnect(self.cluster.connection(int(broker)))

    def probed(self, broker: str, outcome: str) -> None:
        self.cluster.probed(self.probes[int(broker)], OUTCOMES[outcome])

    def brokers(self) -> str:
        return "\n".join(
            f"{b.node_id}: epoch {b.epoch}, {'fenced' if b.fenced else 'unfenced'}"
            + (", shutting down" if b.in_controlled_shutdown else "")
            for b in self.cluster.image.brokers.values()
        )

    def partition(self, topic: str) -> str:
        p = self.cluster.partition(topic)
        return (
            f"replicas={show_ids(p.replicas)} isr={show_ids(p.isr)} leader={p.leader} "
            f"leader-epoch={p.leader_epoch} partition-epoch={p.partition_epoch}"
        )


def show(record: Any) -> str:
    match record:
        case r.RegisterBrokerRecord():
            return f"register broker {record.broker_id}, epoch {record.broker_epoch}" + ", fenced" * record.fenced
        case r.BrokerRegistrationChangeRecord():
            what = {1: "fence", -1: "unfence", 0: "shutdown of"}[record.fenced]
            return f"{what} broker {record.broker_id}"
        case r.TopicRecord():
            return f"topic {record.name}"
        case r.PartitionRecord():
            return f"partition {record.partition_id}: isr={show_ids(record.isr)} leader={record.leader}"
        case r.PartitionChangeRecord():
            words = [f"change {record.partition_id}:"]
            words += [] if record.isr is None else [f"isr={show_ids(record.isr)}"]
            words += [] if record.leader == r.NO_LEADER_CHANGE else [f"leader={record.leader}"]
            return " ".join(words)
        case _:
            return type(record).__name__


def show_ids(nodes: tuple[NodeId, ...] | tuple[int, ...]) -> str:
    return ",".join(str(n) for n in nodes) or "-"
