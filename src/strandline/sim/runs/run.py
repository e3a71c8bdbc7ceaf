"""One run: a cluster starts, clients work while faults come, faults end, the cluster heals, and everything is judged.

A run follows from its plan alone. Whatever is wrong is one `Violation`, the first one.
"""

import gc
from collections.abc import Callable, Sequence

from strandline.base.value import Value
from strandline.history.operation import Operation
from strandline.sim.clients.admin import Admin
from strandline.sim.clients.client import Client
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.faults.table import DAMAGED, DIRECTORIES, ELIGIBLE, FAULTS, METADATA, MOVES, RECOVERIES, SCRIPTED
from strandline.sim.hostile import TOPIC
from strandline.sim.runs.calm import Material, calm, material_of
from strandline.sim.runs.plan import Fault, Plan, draw_plan
from strandline.sim.runs.secured import begin_to_change, enter_permitter, start_intruder
from strandline.sim.scene import Scene
from strandline.sim.simulation import World
from strandline.sim.stranger.stranger import Stranger
from strandline.sim.workloads.table import WORKLOADS
from strandline.sim.workloads.workload import Setting, Workload
from strandline.sim.world.trace import Trace
from strandline.sim.world.violation import Violation

START_MS = 30_000  # a cluster without faults must have started by then
SETUP_MS = 700  # what the admin has to make topics before clients begin
Keep = Callable[[Sequence[Operation], Material], None]


class RunResult(Value, frozen=True):
    seed: int
    check: str  # what failed; empty: nothing
    evidence: str
    digest: str  # of all effects
    virtual_ms: int
    events: int  # that nodes handled
    operations: int  # of clients
    exceeded: int  # partitions where the faults were more than is promised to survive
    story: tuple[str, ...]  # the last lines
    seen: dict[str, int] = {}  # noqa: RUF012  # a Value copies it; how often what happened, and which faults struck

    @property
    def is_ok(self) -> bool:
        return not self.check


def run_seed(seed: int, trace: Trace | None = None) -> RunResult:
    return run_plan(draw_plan(seed), trace)


def run_plan(plan: Plan, trace: Trace | None = None, keep: Keep | None = None) -> RunResult:
    """`keep` is given what clients did, and what is known beside it, when the run is over or broken off."""
    world = World(plan.seed, plan.options, trace)
    scene = Scene(world)
    check = evidence = ""
    is_collecting = gc.isenabled()
    gc.disable()  # a run keeps nearly all that it makes; to look through it again and again finds nothing
    try:
        play(world, scene, plan)
    except Violation as violation:
        check, evidence = violation.check, violation.evidence
    finally:
        if is_collecting:
            gc.enable()
    if keep is not None:
        keep(world.history.operations, material_of(world, scene))
    return RunResult(
        seed=plan.seed,
        check=check,
        evidence=evidence,
        digest=world.digest(),
        virtual_ms=world.time.now,
        events=world.events,
        operations=len(world.history.operations),
        exceeded=len(world.damage.exceeded),
        story=tuple(world.story),
        seen=dict(sorted(world.seen.items())),
    )


def play(world: World, scene: Scene, plan: Plan) -> None:
    options = plan.options
    for machine in world.machines.values():
        machine.start()
    world.run_until("all brokers are in", world.why_not_whole, START_MS)
    admin = Admin(scene, "admin")
    scene.enter(admin)
    permitting = enter_permitter(scene, options)
    setting = Setting(
        options.min_isr,
        options.replication_factor,
        options.segment_bytes,
        options.pace_ms,
        is_duplicating=options.weather.duplicated_permille > 0,
    )
    workloads = [WORKLOADS[name](scene, admin, setting) for name in options.workloads]
    for workload in workloads:
        workload.setup()
    world.run(SETUP_MS)
    for workload in workloads:
        workload.start()
        for client in workload.clients():
            scene.enter(client)
    injector = FaultInjector(world, admin)
    schedule_faults(injector, plan)
    stranger = start_stranger(world, admin) if options.stranger_ms else None
    intruder = start_intruder(world)
    permitters: list[Client] = [*permitting]
    permitters += [begin_to_change(permitter, scene, world) for permitter in permitting]
    world.run(options.span_ms)
    injector.is_over = True
    if stranger is not None:
        stranger.is_over = True
    if intruder is not None:
        intruder.is_over = True
    for client in permitters:
        client.is_stopped = True
    calm(world, scene, admin, workloads, permitters)


def start_stranger(world: World, admin: Admin) -> Stranger:
    """The stranger has a topic of its own: so it gets far with clients' messages, and does no harm to others' data."""
    admin.errands.append(admin.create(TOPIC))
    return Stranger(world, world.options.stranger_ms)


def schedule_faults(injector: FaultInjector, plan: Plan) -> None:
    world = injector.world
    kinds = FAULTS | MOVES | ELIGIBLE | DAMAGED | METADATA | RECOVERIES | DIRECTORIES | SCRIPTED

    def strike(fault: Fault) -> None:
        if not injector.is_over:
            world.seen[f"struck: {fault.kind}"] += 1  # it may find nothing that it may do: what was done has own counts
            kinds[fault.kind].act(injector, world.random(f"fault {fault.salt}"))

    for fault in plan.faults:
        world.time.later(fault.at_ms, lambda fault=fault: strike(fault))  # type: ignore[misc]  # the default's type is not inferred


__all__ = ["RunResult", "Workload", "run_plan", "run_seed"]
