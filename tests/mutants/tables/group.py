"""Mutants of the group coordinator."""

from tests.mutants.mutant import Breaks, Mutant, table

GROUP = table(
    Mutant(
        "a late write completes a newer generation",
        "group/coordinator.py",
        "if group.state is not State.COMPLETING_REBALANCE or group.generation != generation:",
        "if group.state is not State.COMPLETING_REBALANCE:",
        Breaks.AGREEMENT,
        ("unit/group/test_syncing.py::test_a_write_that_ends_in_the_next_generation_completes_nothing_of_it",),
    ),
    Mutant(
        "offsets of groups with members expire",
        "group/coordinator.py",
        ("            if group is not None and (group.members or group.pending):\n                continue\n"),
        "",
        Breaks.DURABILITY,
        ("unit/group/test_offsets.py::test_offsets_of_a_group_with_members_are_not_forgotten_however_old_they_are",),
    ),
    Mutant(
        "an older offset commit is replayed over a newer one",
        "group/shard.py",
        "                self.offsets.setdefault(key.group, {})[(key.topic, key.partition)] = committed\n",
        ("                self.offsets.setdefault(key.group, {}).setdefault((key.topic, key.partition), committed)\n"),
        Breaks.DURABILITY,
        ("unit/group/test_offsets.py::test_a_new_coordinator_finds_the_last_offset_that_was_committed",),
    ),
)
