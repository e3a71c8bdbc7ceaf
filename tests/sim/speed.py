"""`python -m tests.sim.speed [--profile]`: virtual seconds that the simulator plays in one second of processor time.

Two loads: three nodes under the workload `orders` without faults, and drawn seeds with all that they bring. Each is
warmed up first, as codecs are built when they are first used. With `--profile` it prints where the time went instead.
"""

import cProfile
import gc
import pstats
import sys
import time
from collections.abc import Sequence

from strandline.sim.runs.plan import Plan, draw_plan
from strandline.sim.runs.run import run_plan
from strandline.sim.world.options import Options

DRAWN = range(1_000_001, 1_000_007)
LINES = 40


def orders(span_ms: int) -> Plan:
    return Plan(1, Options(workloads=("orders",), pace_ms=100, span_ms=span_ms), ())


def measure(name: str, plans: Sequence[Plan], *, profile: bool) -> None:
    run_plan(plans[0])
    gc.collect()
    gc.disable()  # as the processes that run many seeds do
    profiler = cProfile.Profile()
    if profile:
        profiler.enable()
    start = time.process_time()
    outcomes = [run_plan(plan) for plan in plans]
    spent = time.process_time() - start
    profiler.disable()
    gc.enable()
    failed = [outcome.seed for outcome in outcomes if not outcome.is_ok]
    virtual, events = sum(one.virtual_ms for one in outcomes) / 1000, sum(one.events for one in outcomes)
    operations = sum(one.operations for one in outcomes)
    print(
        f"{name}: {virtual:.1f} virtual s in {spent:.1f} s, {virtual / spent:.1f} a second; {operations / virtual:.0f}"
        f" operations and {events / virtual:.0f} events a virtual second, {spent / events * 1e6:.0f} µs each"
        + (f"; failed: {failed}" if failed else ""),
        flush=True,
    )
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(LINES)


def main() -> None:
    profile = "--profile" in sys.argv[1:]
    measure("orders", [orders(30_000)], profile=profile)
    measure("drawn seeds", [draw_plan(seed) for seed in DRAWN], profile=profile)


if __name__ == "__main__":
    main()
