"""What seeds draw so that things overlap that seldom do. No run: only what is drawn."""

from strandline.sim.faults.table import DIRECTORIES, RECOVERIES
from strandline.sim.runs.plan import (
    COMPACTED,
    FIRST_LASTING,
    FIRST_RARE,
    FIRST_READING,
    LASTING,
    MEMBERS,
    OVERLAPPING,
    STRAINED,
    compacts,
    draw_directories,
    draw_flips,
    draw_overlaps,
    draw_plan,
    draw_rare,
    draw_recoveries,
)
from strandline.sim.runs.transactional import FIRST_TRANSACTIONAL, SETTINGS, TRANSACTIONAL

SEEDS = range(FIRST_READING, FIRST_READING + 120)
RARE_SEEDS = range(FIRST_RARE, FIRST_RARE + 120)


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


def test_later_seeds_have_keys_that_come_only_once_where_the_others_have_none() -> None:
    before = [draw_plan(seed) for seed in range(FIRST_LASTING - 60, FIRST_LASTING)]
    since = [draw_plan(seed) for seed in range(FIRST_LASTING, FIRST_LASTING + 60)]
    for plans, drawn, other in ((before, COMPACTED, LASTING), (since, LASTING, COMPACTED)):
        assert sum(drawn in plan.options.workloads for plan in plans) > len(plans) // 8
        assert all(other not in plan.options.workloads for plan in plans)


def test_what_is_rare_is_drawn_by_none_of_the_seeds_that_are_kept_for_their_bugs() -> None:
    for seed in range(1, FIRST_RARE):
        plan = draw_plan(seed)
        assert draw_rare(seed, plan.options, 0) == []
        assert draw_recoveries(seed, plan.options, 0) == (plan.options, [])
        assert draw_directories(seed, plan.options, 0) == (plan.options, [])
        assert draw_flips(seed, plan.options, 0) == []
        assert not {MEMBERS, STRAINED} & set(plan.options.workloads)


def test_what_is_rare_comes_in_numbers_in_some_of_the_others_and_in_few_of_them() -> None:
    plans = [draw_plan(seed) for seed in RARE_SEEDS]
    kinds = [[fault.kind for fault in plan.faults] for plan in plans]
    shares = {
        "members": sum(MEMBERS in plan.options.workloads for plan in plans),
        "strained": sum(STRAINED in plan.options.workloads for plan in plans),
        "absurd proposals": sum(found.count("absurd proposal") >= 5 for found in kinds),
        "directories": sum(bool(set(DIRECTORIES) & set(found)) for found in kinds),
        "flips": sum("flipped" in found for found in kinds),
        "recoveries": sum(bool(set(RECOVERIES) & set(found)) for found in kinds),
    }
    assert all(len(plans) // 20 < count < len(plans) // 2 for count in shares.values()), shares
    assert {kind for found in kinds for kind in found} >= {*RECOVERIES, *DIRECTORIES}
    assert all(
        plan.options.log_dirs > 1 for plan, found in zip(plans, kinds, strict=True) if set(DIRECTORIES) & set(found)
    )
    assert all(plan.options.is_ruthless for plan, found in zip(plans, kinds, strict=True) if "all lost" in found)
    assert not any(
        MEMBERS in plan.options.workloads for plan in plans if plan.options.weather.duplicated_permille
    )  # a commit that comes twice sets a group back


def test_half_of_the_later_seeds_have_transactions_and_none_of_the_earlier_ones() -> None:
    assert not any(set(TRANSACTIONAL) & set(draw_plan(seed).options.workloads) for seed in (*SEEDS, 19_999_999))
    plans = [draw_plan(seed) for seed in range(FIRST_TRANSACTIONAL, FIRST_TRANSACTIONAL + 120)]
    drawn = [[name for name in plan.options.workloads if name in TRANSACTIONAL] for plan in plans]
    assert len(plans) // 3 < sum(map(bool, drawn)) < len(plans) * 2 // 3
    assert all(sum(name in found for found in drawn) > len(plans) // 20 for name in TRANSACTIONAL)
    assert max(map(len, drawn)) == 2
    for plan, found in zip(plans, drawn, strict=True):
        assert all(SETTINGS[name].items() <= plan.options.settings.items() for name in found)
