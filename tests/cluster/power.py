"""Real processes under load whose power is cut, one at a time, with Eligible Leader Replicas; then the judgement.

    python -m tests.cluster.power --cuts 50
    python -m tests.cluster.power --cuts 50 --load transactions

Three brokers with min ISR 2 and a controller. In each episode none, one or two brokers are cut off, paused or stopped,
so that the ISR shrinks, perhaps to a single member; then one of the three loses power and all that it had not synced,
now and then the controller, too, and everybody comes back in any order. The next cut waits until the one that lost data
is in sync everywhere: at most min ISR − 1 machines are lossy at a time, which is what KIP-966 promises to survive.
Systems write back pages of their own accord now and then, so that a cut leaves anything between all and nothing.

At the end everything is read, all replicas must hold the same bytes, and the clients' histories may show no anomaly.
Of transactions (`transactional_load.py`) each that was committed must be wholly there, and none that was aborted.
Ends with status 1 if something was wrong. With `--elr off` it should: that is what the campaign can find.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from tests.cluster.hour import PROPERTIES, Campaign, Wrong, cpu_s
from tests.cluster.transactional_load import TRANSACTION_PACE, open_transactions, whole

from strandline.base.ids import METADATA_TOPIC, TopicPartition
from strandline.client.ask import ask
from strandline.demo.last_replica.stage import MIN_ISR, Stage, end_of
from strandline.history.operation import Kind, Operation, Outcome
from strandline.metadata.image import RECOVERING
from strandline.metadata.records import PartitionChangeRecord
from strandline.sim.workloads.table import Commits, Orders, Transacting
from strandline.sim.workloads.workload import Workload
from strandline.testing.local_cluster import HOST, NodeProcess
from strandline.testing.power_loss import restore
from strandline.testing.relays import Relays
from strandline.wire.messages.topics.metadata import MetadataRequest

BACK_S = 60.0
WRITE_BACK_MS = 2_000
OUT_S = 3.0  # about what it takes until a broker is out of the ISR
PACE = {
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "2000",
    "min.insync.replicas": str(MIN_ISR),
}


class Wires:
    """What a campaign asks of a network."""

    def __init__(self, relays: Relays) -> None:
        self.relays = relays

    def isolate(self, node: int, *, both: bool) -> None:
        assert both
        self.relays.cut_off(node)

    def cut(self, a: int, b: int, *, both: bool) -> None:
        raise AssertionError("relays cut nodes off, not ways")

    def slow(self, node: int, delay_ms: int) -> bool:
        return False

    def heal(self) -> None:
        self.relays.heal()

    def break_off(self, rng: Random) -> int:
        return 0


LOADS: dict[str, tuple[type[Workload], ...]] = {"records": (Orders, Commits), "transactions": (Transacting,)}


class PowerCampaign(Campaign):
    def __init__(self, stage: Stage, seed: int, load: str) -> None:
        brokers: Any = SimpleNamespace(nodes=stage.brokers)
        super().__init__(brokers, Wires(stage.relays), seed, LOADS[load])
        self.cluster_stage = stage
        self.counts: Counter[str] = Counter()
        self.records_dropped = 0

    def episode(self) -> None:
        """One loss of power, and whatever else happens around it."""
        order = self.rng.sample(list(self.injector.machines), 3)
        victim, *others = order
        for other in others[: self.rng.choice((0, 1, 1, 2, 2, 2))]:
            self.take_out(other)
            self.injector.run(self.rng.choice((0.1, OUT_S, OUT_S)) * self.rng.uniform(0.8, 1.2))
        self.cut_power(self.cluster_stage.brokers[victim])
        if self.rng.randrange(4) == 0:
            self.cut_power_of_controller()
        self.injector.run(self.rng.choice((0.0, 1.0, OUT_S)))
        returns = [self.wires_heal, *(self.injector.machines[n].go_on for n in others), *self.starts(order)]
        self.rng.shuffle(returns)
        for come_back in returns:
            come_back()
            self.injector.run(self.rng.uniform(0, 0.6))
        self.trouble.end()
        self.wait(f"broker {victim} is in sync", lambda: self.why_lossy(self.cluster_stage.brokers[victim]), BACK_S)
        began = time.monotonic()
        self.wait("all clients make progress", self.progressing(self.progress()), BACK_S)
        self.recoveries_s.append(time.monotonic() - began)

    def starts(self, nodes: list[int]) -> list[Any]:
        return [self.injector.machines[n].start for n in nodes]

    def wires_heal(self) -> None:
        self.cluster_stage.relays.heal()

    def take_out(self, node: int) -> None:
        machine = self.injector.machines[node]
        ways = {
            "cut off": lambda: self.cluster_stage.relays.cut_off(node),
            "paused": machine.pause,
            "shut down": machine.shut_down,
        }
        name = self.rng.choice(("cut off", "cut off", "paused", "shut down"))
        self.counts[name] += 1
        ways[name]()

    def cut_power(self, broker: NodeProcess) -> None:
        self.counts["power cut"] += 1
        broker.kill()
        before = log_ends(broker)
        restore(broker.durable_path)
        after = log_ends(broker)
        dropped = sum(max(0, end - after.get(name, 0)) for name, end in before.items())
        self.records_dropped += dropped
        self.counts["power cut that cost records"] += bool(dropped)

    def cut_power_of_controller(self) -> None:
        """It alone has the metadata, and has said nothing that it had not synced: so nothing is lost."""
        self.counts["power cut of the controller"] += 1
        controller = self.cluster_stage.controller
        controller.cut_power()
        self.injector.run(self.rng.uniform(0, 0.5))
        controller.start()

    def why_lossy(self, broker: NodeProcess) -> str:
        """Asked of the broker itself, which answers when it has read of its own return: before that, what it knows may
        be of the time when it had everything. Empty: it is in sync everywhere."""
        try:
            answer = ask(HOST, broker.port, MetadataRequest(topics=None), 12, timeout_s=1)
        except OSError as error:
            return str(error) or "no answer"
        lacking = [
            f"{topic.name}-{row.partition_index}"
            for topic in answer.topics
            for row in topic.partitions
            if broker.node_id in row.replica_nodes and broker.node_id not in row.isr_nodes
        ]
        return ", ".join(lacking)

    def finish(self, history: Path | None = None) -> dict[str, Any]:
        self.done([client for workload in self.workloads for client in workload.writers])
        self.wait("no transaction is open", lambda: open_transactions(self.cluster_stage.brokers, self.ats()), BACK_S)
        return super().finish(history)

    def ats(self) -> list[TopicPartition]:
        return [at for workload in self.workloads for at in workload.partitions()]

    def elections(self) -> dict[str, int]:
        """As the metadata log has them. Where nobody is in sync, an eligible one leads next, or an unclean one."""
        changes = [r for r in self.cluster_stage.records() if isinstance(r, PartitionChangeRecord)]
        return {
            "partitions left with nobody in sync": sum(change.isr == () for change in changes),
            "unclean elections": sum(change.leader_recovery_state == RECOVERING for change in changes),
        }


def kept(operations: Sequence[Operation]) -> dict[str, int]:
    """Beside the judgement, and simpler: of what was acknowledged with acks=all, what did the last readers find in its
    place?"""
    found = {
        (read.key, read.offset): read.value
        for operation in operations
        if operation.process.startswith("last-")
        for read in operation.reads
    }
    strong = [
        write
        for operation in operations
        if operation.kind is Kind.SEND and operation.outcome is Outcome.OK and operation.acks == -1
        for write in operation.writes
    ]
    lost = [write for write in strong if found.get((write.key, write.offset)) != write.value]
    if lost:
        raise Wrong(f"{len(lost)} of {len(strong)} records are lost that acks=all acknowledged: {lost[0]}")
    return {"acknowledged with acks=all": len(strong), "of these lost": len(lost)}


def log_ends(broker: NodeProcess) -> dict[str, int]:
    folders = [path for path in broker.data_path.glob("*-*") if path.is_dir() and METADATA_TOPIC not in path.name]
    return {path.name: end_of(sorted(path.glob("*.log"))) for path in folders}


def run(cuts: int, seed: int, is_elr_on: bool, load: str, folder: Path) -> dict[str, Any]:
    began, cpu = time.monotonic(), cpu_s()
    stage = Stage(folder, {**PROPERTIES, **PACE, **TRANSACTION_PACE}, write_back_ms=WRITE_BACK_MS)
    stage.controller.can_lose_power(WRITE_BACK_MS)
    with stage:
        stage.set_elr(int(is_elr_on))
        campaign = PowerCampaign(stage, seed, load)
        campaign.begin()
        campaign.injector.run(1)
        try:
            for _ in range(cuts):
                campaign.episode()
            result = campaign.finish()
            result |= (kept if load == "records" else whole)(campaign.stage.history.operations)
        except Wrong as wrong:
            raise Wrong(f"after {campaign.counts['power cut']} power cuts: {wrong}") from None
        elections = campaign.elections()
    wall = time.monotonic() - began
    return {
        "seed": seed,
        "load": load,
        "eligible leader replicas": "on" if is_elr_on else "off",
        "seconds": round(wall, 1),
        "faults": dict(sorted(campaign.counts.items())),
        "records that power cuts took from a replica": campaign.records_dropped,
        **elections,
        "longest recovery s": round(max(campaign.recoveries_s), 2),
        "cores used": round((cpu_s() - cpu) / wall, 2),
        **result,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--elr", choices=("on", "off"), default="on")
    parser.add_argument("--load", choices=tuple(LOADS), default="records")
    parser.add_argument("--folder", type=Path, help="keep the nodes' folders here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="power-") as scratch:
        try:
            result = run(options.cuts, options.seed, options.elr == "on", options.load, options.folder or Path(scratch))
        except Wrong as wrong:
            print(f"WRONG: {wrong}", file=sys.stderr)
            return 1
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
