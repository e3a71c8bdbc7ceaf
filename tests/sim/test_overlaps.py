"""What seeds draw so that things overlap that seldom do. No run: only what is drawn."""

from strandline.sim.plan import COMPACTED, FIRST_READING, OVERLAPPING, compacts, draw_overlaps, draw_plan

SEEDS = range(FIRST_READING, FIRST_READING + 120)


def test_the_first_seeds_are_as_they_were() -> None:
    for seed in range(1, FIRST_READING):
        plan = draw_plan(seed)
        assert draw_overlaps(seed, plan.options, 0) == (plan.options, [])
        assert COMPACTED not in plan.options.workloads


def test_each_kind_of_overlap_is_drawn_by_some_of_the_others_and_by_no_means_by_all() -> None:
    plans = {seed: draw_plan(seed) for seed in SEEDS}
    kinds = [{fault.kind for fault in plan.faults} for plan in plans.values()]
    shares = {
        "slow syncs": sum(plan.options.sync_ms > 20 for plan in plans.values()),
        "scripted": sum(bool(kind & set(OVERLAPPING)) for kind in kinds),
        "compacted": sum(COMPACTED in plan.options.workloads for plan in plans.values()),
        "many deletions": sum(sum(f.kind == "trim" for f in plan.faults) >= 3 for plan in plans.values()),
    }
    assert all(len(SEEDS) // 8 < count < len(SEEDS) * 2 // 3 for count in shares.values()), shares
    assert {kind for found in kinds for kind in found} >= set(OVERLAPPING)
    assert all(compacts(seed) == (COMPACTED in plan.options.workloads) for seed, plan in plans.items())
