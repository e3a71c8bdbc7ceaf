"""The simulator's workloads and process faults, against real processes, judged by the same checks."""

from collections.abc import Callable, Sequence
from random import Random

import pytest
from tests.cluster.hour import key_read
from tests.cluster.real_stage import RealFaultInjector, RealStage

from strandline.history import atomicity, cycles
from strandline.history.judge import judge
from strandline.history.operation import Key
from strandline.history.policy import Facts
from strandline.sim.clients.admin import Admin
from strandline.sim.faults.table import FAULTS
from strandline.sim.runs.transactional import SETTINGS
from strandline.sim.workloads.table import WORKLOADS
from strandline.sim.workloads.workload import Setting, Workload
from strandline.testing.local_cluster import LocalCluster

FAULTS_OF_PROCESSES = ("kill", "start", "pause", "shut down")


def played(
    cluster: LocalCluster, stage: RealStage, names: Sequence[str], faults: int
) -> tuple[list[Workload], dict[Key, str]]:
    """Workloads under faults until the end, and who has read all of each partition."""
    injector, rng = RealFaultInjector(cluster), Random(1)
    admin = Admin(stage, "admin")
    workloads = [WORKLOADS[name](stage, admin, Setting(2, 3, "1048576", 30)) for name in names]
    for workload in workloads:
        workload.setup()
    stage.enter(admin)
    stage.finish([admin])
    for workload in workloads:
        workload.start()
        for client in workload.clients():
            stage.enter(client)
    injector.run(1)
    for _ in range(faults):
        FAULTS[rng.choice(FAULTS_OF_PROCESSES)].act(injector, rng)  # type: ignore[arg-type]
        injector.run(rng.choice((0.1, 0.5, 1.0)))
    injector.run(4)
    injector.end()
    stage.finish([client for workload in workloads for client in workload.writers])
    injector.end()
    stage.finish([client for workload in workloads for client in workload.readers])
    last = [workload.last_reader(at) for workload in workloads for at in workload.partitions()]
    for reader in last:
        stage.enter(reader)
    stage.finish(list(last))
    return workloads, {key_read(reader): reader.name for reader in last}


@pytest.mark.cluster
def test_orders_and_commits_survive_processes_that_are_killed_paused_and_restarted(cluster: LocalCluster) -> None:
    stage = RealStage(cluster, seed=1)
    workloads, finals = played(cluster, stage, ("orders", "commits"), 8)
    assert all(count > 10 for workload in workloads for count in workload.progress().values())
    assert len(stage.history.operations) > 50
    assert judge(stage.history.operations, Facts(), finals=finals).report() == ""


@pytest.mark.cluster
@pytest.mark.parametrize(
    "names", [("copying", "exchange"), pytest.param(("zombies", "two-phase"), marks=pytest.mark.long)], ids=" and ".join
)
def test_transactions_survive_processes_that_are_killed_paused_and_restarted(
    names: Sequence[str], start_cluster: Callable[..., LocalCluster]
) -> None:
    settings = {key.replace(".", "_"): value for name in names for key, value in SETTINGS[name].items()}
    cluster = start_cluster(**settings)
    stage = RealStage(cluster, seed=1)
    workloads, finals = played(cluster, stage, names, 5)
    assert all(sum(workload.progress().values()) > 0 for workload in workloads)
    operations = stage.history.operations
    assert judge(operations, Facts(), finals=finals).report() == ""
    wrong = [*atomicity.find(operations, finals), *cycles.find(operations)]
    assert [*wrong, *(one for workload in workloads for one in workload.wrong(operations, finals))] == []
