"""The simulator's workloads and process faults, against real processes, judged by the same checks."""

from random import Random

import pytest
from tests.cluster.hour import key_read
from tests.cluster.real_stage import RealFaultInjector, RealStage

from strandline.history.judge import judge
from strandline.history.policy import Facts
from strandline.sim.clients.admin import Admin
from strandline.sim.clients.consumer import Consumer
from strandline.sim.faults.table import FAULTS
from strandline.sim.workloads.table import Commits, Orders
from strandline.sim.workloads.workload import Setting
from strandline.testing.local_cluster import LocalCluster

FAULTS_OF_PROCESSES = ("kill", "start", "pause", "shut down")


@pytest.mark.cluster
def test_orders_and_commits_survive_processes_that_are_killed_paused_and_restarted(cluster: LocalCluster) -> None:
    stage, injector, rng = RealStage(cluster, seed=1), RealFaultInjector(cluster), Random(1)
    admin = Admin(stage, "admin")
    workloads = [kind(stage, admin, Setting(2, 3, "1048576", 30)) for kind in (Orders, Commits)]
    for workload in workloads:
        workload.setup()
    stage.enter(admin)
    stage.finish([admin])
    for workload in workloads:
        workload.start()
        for client in workload.clients():
            stage.enter(client)
    injector.run(1)
    for _ in range(8):
        FAULTS[rng.choice(FAULTS_OF_PROCESSES)].act(injector, rng)  # type: ignore[arg-type]
        injector.run(rng.choice((0.1, 0.5, 1.0)))
    injector.run(4)
    injector.end()
    stage.finish([client for workload in workloads for client in workload.writers])
    injector.end()
    stage.finish([client for workload in workloads for client in workload.readers])
    last = [Consumer(stage, f"last-{at}", at) for workload in workloads for at in workload.partitions()]
    for reader in last:
        stage.enter(reader)
    stage.finish(list(last))
    assert all(count > 10 for workload in workloads for count in workload.progress().values())
    assert len(stage.history.operations) > 50
    finals = {key_read(reader): reader.name for reader in last}
    assert judge(stage.history.operations, Facts(), finals=finals).report() == ""
