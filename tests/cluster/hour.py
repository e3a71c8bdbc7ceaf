"""Real processes under load that are killed, paused, stopped and cut off for as long as one likes; then the judgement.

    python -m tests.cluster.hour --seconds 600 --network namespaces

Rounds follow one another: faults for a while, then none, until every client makes progress again; so what gets stuck
is noticed in its round. At the end everything is read from beginning to end, all replicas must hold the same bytes, and
the clients' histories may show no anomaly that the configuration does not allow. Ends with status 1 if something was
wrong.

Compared with an hour in which something happens every few seconds, time is compressed by what sets its pace: sessions
of 3 s, replica lag of 1.5 s, and a fault each second.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.cluster.driving import batches_on
from tests.cluster.network import netns
from tests.cluster.network.placing import CLIENTS, PlacedCluster, Wires
from tests.cluster.real_stage import RealFaultInjector, RealStage

from strandline.base.ids import TopicIdPartition
from strandline.history import atomicity
from strandline.history.judge import judge, report
from strandline.history.operation import Key
from strandline.history.policy import Facts
from strandline.history.recorded import write_lines
from strandline.sim.clients.admin import Admin
from strandline.sim.clients.client import Client
from strandline.sim.clients.consumer import Consumer
from strandline.sim.faults import process
from strandline.sim.workloads.table import Commits, Orders
from strandline.sim.workloads.workload import Setting, Workload
from strandline.sim.world.options import IMPATIENT

NODES = 3
ROUND_S = 20.0
PROPERTIES = {
    **IMPATIENT,
    "group.min.session.timeout.ms": "1000",
    "leader.imbalance.check.interval.seconds": "10",
    "offsets.topic.num.partitions": "2",
    "replica.lag.time.max.ms": "1500",
}
PACE_MS = 60


class Wrong(Exception):
    """What must not be; the message says what."""


class Trouble:
    """Faults, drawn one after another."""

    def __init__(self, injector: RealFaultInjector, wires: Wires, rng: Random) -> None:
        self.injector = injector
        self.wires = wires
        self.rng = rng
        self.counts: Counter[str] = Counter()
        self.kinds: dict[str, tuple[int, Callable[[], object]]] = {
            "kill": (5, lambda: process.kill(injector, rng)),  # type: ignore[arg-type]
            "start": (8, lambda: process.start(injector, rng)),  # type: ignore[arg-type]
            "pause": (4, lambda: process.pause(injector, rng)),  # type: ignore[arg-type]
            "shut down": (2, lambda: process.shut_down(injector, rng)),  # type: ignore[arg-type]
            "cut": (4, self.cut),
            "isolate": (3, self.isolate),
            "slow": (3, self.slow),
            "heal": (7, wires.heal),
            "break off": (5, self.break_off),
        }
        self.broken = 0  # connections

    def break_off(self) -> None:
        self.broken += self.wires.break_off(self.rng)

    def cut(self) -> None:
        a, b = self.rng.sample([CLIENTS, *self.injector.machines], 2)
        self.wires.cut(a, b, both=bool(self.rng.randrange(2)))

    def isolate(self) -> None:
        self.wires.isolate(self.rng.choice(list(self.injector.machines)), both=bool(self.rng.randrange(2)))

    def slow(self) -> None:
        if not self.wires.slow(self.rng.choice(list(self.injector.machines)), self.rng.choice((20, 200, 800))):
            self.counts["slow"] -= 1

    def strike(self) -> None:
        weights = [weight for weight, _ in self.kinds.values()]
        (name,) = self.rng.choices(list(self.kinds), weights)
        self.counts[name] += 1
        self.kinds[name][1]()

    def end(self) -> None:
        self.wires.heal()
        self.injector.due.clear()
        self.injector.end()


class Campaign:
    def __init__(
        self, cluster: PlacedCluster, wires: Wires, seed: int, kinds: Sequence[type[Workload]] = (Orders, Commits)
    ) -> None:
        self.cluster = cluster
        self.stage = RealStage(cluster, seed)
        self.injector = RealFaultInjector(cluster)
        self.rng = Random(seed)
        self.trouble = Trouble(self.injector, wires, self.rng)
        self.admin = Admin(self.stage, "admin")
        setting = Setting(2, NODES, "1048576", PACE_MS)
        self.workloads: list[Workload] = [kind(self.stage, self.admin, setting) for kind in kinds]
        self.recoveries_s: list[float] = []

    def begin(self) -> None:
        for workload in self.workloads:
            workload.setup()
        self.stage.enter(self.admin)
        self.stage.finish([self.admin])
        for workload in self.workloads:
            workload.start()
            for client in workload.clients():
                self.stage.enter(client)

    def round(self, span_s: float, every_s: float) -> None:
        end = time.monotonic() + span_s
        while time.monotonic() < end:
            self.trouble.strike()
            self.injector.run(self.rng.uniform(0, 2 * every_s))
        self.trouble.end()
        began = time.monotonic()
        self.wait("all clients make progress", self.progressing(self.progress()), 60)
        self.recoveries_s.append(time.monotonic() - began)

    def progress(self) -> dict[str, int]:
        return {name: count for workload in self.workloads for name, count in workload.progress().items()}

    def progressing(self, before: dict[str, int]) -> Callable[[], str]:
        def why_not() -> str:
            return ", ".join(name for name, count in self.progress().items() if count <= before[name])

        return why_not

    def wait(self, what: str, why_not: Callable[[], str], within_s: float) -> None:
        """A controlled shutdown may end only now, so stopped nodes are started again and again."""
        end = time.monotonic() + within_s
        while why := why_not():
            if self.stage.broken:
                raise Wrong(f"a client broke: {self.stage.broken[0]!r}")
            if time.monotonic() > end:
                raise Wrong(f"not so within {within_s:.0f} s: {what}: {why}")
            self.injector.end()
            time.sleep(0.05)

    def finish(self, history: Path | None = None) -> dict[str, Any]:
        """`history`: what clients did and were told, for `strandline pipeline histories`."""
        self.done([client for workload in self.workloads for client in workload.writers])
        self.wait("all replicas hold the same bytes", self.why_not_equal, 60)
        self.done([client for workload in self.workloads for client in workload.readers])
        last = [workload.last_reader(at) for workload in self.workloads for at in workload.partitions()]
        for reader in last:
            self.stage.enter(reader)
        self.done(last)
        finals = {key_read(reader): reader.name for reader in last}
        if history is not None:
            lines = write_lines(self.stage.history.operations, Facts(), finals=finals, run=f"hour {self.stage.seed}")
            history.write_bytes(b"".join(lines))
        judgement = judge(self.stage.history.operations, Facts(), finals=finals)
        violations = [*judgement.violations, *atomicity.find(self.stage.history.operations, finals)]
        if violations:
            raise Wrong(report(violations))
        return {
            "operations": len(self.stage.history.operations),
            "acknowledged or committed": sum(self.progress()[c.name] for c in self.writers()),
            "records read at the end": sum(reader.read for reader in last),
            "anomalies": len(violations),
            "tolerated": {f"{name}: {why}": n for (name, why), n in judgement.excused().items()},
        }

    def writers(self) -> list[Client]:
        return [c for workload in self.workloads for c in workload.writers if c.name in self.progress()]

    def done(self, clients: Sequence[Client]) -> None:
        for client in clients:
            client.is_stopped = True
        self.wait("clients end", lambda: ", ".join(c.name for c in clients if not c.is_done), 90)

    def why_not_equal(self) -> str:
        unequal = []
        for at in (at for workload in self.workloads for at in workload.partitions()):
            first, *rest = (batches_on(node, at.topic, at.partition) for node in self.cluster.nodes)
            if not first or any(other != first for other in rest):
                unequal.append(str(at))
        return ", ".join(unequal)


def key_read(reader: Consumer) -> Key:
    (topic_id,) = reader.positions
    at = TopicIdPartition(topic_id, reader.at.partition)
    return Key(reader.at.topic, at.topic_id, at.partition)


def made(network: str, folder: Path) -> PlacedCluster:
    if network == "namespaces":
        return netns.NamespaceCluster(folder, NODES, PROPERTIES)
    from tests.cluster.network.proxy import ProxiedCluster

    return ProxiedCluster(folder, NODES, PROPERTIES)


def run(network: str, seconds: float, seed: int, every_s: float, folder: Path) -> dict[str, Any]:
    began, cpu = time.monotonic(), cpu_s()
    cluster = made(network, folder)
    with cluster:
        campaign = Campaign(cluster, cluster.wires, seed)
        campaign.begin()
        campaign.injector.run(1)
        start = time.monotonic()
        while (left := start + seconds - time.monotonic()) > 0:
            campaign.round(min(ROUND_S, left), every_s)
        faults_s = time.monotonic() - start
        result = campaign.finish(folder / "history.jsonl")
    wall = time.monotonic() - began
    return {
        "network": network,
        "seed": seed,
        "seconds of faults and recoveries": round(faults_s, 1),
        "faults": dict(sorted(campaign.trouble.counts.items())),
        "connections broken": campaign.trouble.broken,
        "rounds": len(campaign.recoveries_s),
        "longest recovery s": round(max(campaign.recoveries_s), 2),
        "cores used": round((cpu_s() - cpu) / wall, 2),
        **result,
    }


def cpu_s() -> float:
    """Of this process and of the nodes that have ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two faults, on average")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--network", choices=("namespaces", "proxies"), default="namespaces")
    parser.add_argument("--folder", type=Path, help="keep the nodes' folders here")
    options = parser.parse_args()
    if options.network == "namespaces" and not netns.is_inside():
        why = netns.why_not()
        if why is not None:
            print(f"{why}; try --network proxies", file=sys.stderr)
            return 2
        inside = netns.enter([sys.executable, "-m", "tests.cluster.hour", *sys.argv[1:]])
        os.execvp(inside[0], inside)
    with tempfile.TemporaryDirectory(prefix="hour-") as scratch:
        try:
            result = run(options.network, options.seconds, options.seed, options.every, options.folder or Path(scratch))
        except Wrong as wrong:
            print(f"WRONG: {wrong}", file=sys.stderr)
            return 1
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
