"""A failing plan becomes as small as the failure allows."""

import msgspec

from strandline.broker.config import ConfigError
from strandline.sim.runs.plan import Fault, Plan, draw_plan, read_plan, write_plan
from strandline.sim.runs.run import RunResult
from strandline.sim.runs.shrink import Shrinker, signature
from strandline.sim.world.options import Options

OK = RunResult(1, "", "", "d", 1, 1, 1, 0, ())


def failing(check: str) -> RunResult:
    return msgspec.structs.replace(OK, check=check)


def plan_of(count: int) -> Plan:
    faults = tuple(Fault(1000 + 100 * salt, "kill", salt) for salt in range(count))
    return Plan(1, Options(workloads=("orders", "commits", "brief"), log_dirs=2, drift_ppm=5), faults)


def test_only_the_faults_that_matter_stay_and_the_rest_becomes_plain() -> None:
    def run(plan: Plan) -> RunResult:
        salts = {fault.salt for fault in plan.faults}
        is_bad = {3, 17} <= salts and "orders" in plan.options.workloads
        return failing(f"n{len(salts)} lost offset {len(salts)}") if is_bad else OK

    plan = plan_of(24)
    reported: list[int] = []
    smaller, outcome = Shrinker(
        run, plan, run(plan), runs_max=500, progress=lambda plan, left: reported.append(len(plan.faults))
    ).shrink()
    assert [fault.salt for fault in smaller.faults] == [3, 17]
    assert smaller.options.workloads == ("orders",)
    assert (smaller.options.log_dirs, smaller.options.drift_ppm) == (1, 0)
    assert smaller.options.span_ms < plan.options.span_ms
    assert not outcome.is_ok
    assert reported == sorted(reported, reverse=True)


def test_a_smaller_plan_that_fails_differently_is_not_taken() -> None:
    def run(plan: Plan) -> RunResult:
        return failing("the first law") if len(plan.faults) == 8 else failing("another law")

    plan = plan_of(8)
    assert len(Shrinker(run, plan, run(plan), runs_max=100, progress=lambda *_: None).shrink()[0].faults) == 8


def test_no_more_runs_are_made_than_allowed() -> None:
    runs: list[Plan] = []

    def run(plan: Plan) -> RunResult:
        runs.append(plan)
        return failing("a law")

    Shrinker(run, plan_of(40), failing("a law"), runs_max=7, progress=lambda *_: None).shrink()
    assert len(runs) == 7


def test_a_failure_is_known_again_whatever_names_and_numbers_it_has() -> None:
    first = "n1 leads in epoch 7 of orders-0 and its log ends at 0, but 1305 are committed"
    assert signature(first) == signature(first.replace("n1", "n3").replace("1305", "12").replace("7", "9"))
    assert signature(first) != signature("the high watermark of orders-0 fell from 5 to 3 on n1")


def test_a_plan_can_be_written_down_and_read_again() -> None:
    plan = draw_plan(7)
    assert read_plan(write_plan(plan)) == plan


def test_a_plan_that_is_no_configuration_is_not_smaller() -> None:
    """One setting may need another: without it no node starts, and nothing is learnt."""

    def run(plan: Plan) -> RunResult:
        if len(plan.faults) < 3:
            raise ConfigError("a setting needs another")
        return failing("lost")

    smaller, _ = Shrinker(run, plan_of(6), failing("lost"), runs_max=100, progress=lambda plan, left: None).shrink()
    assert len(smaller.faults) == 3
