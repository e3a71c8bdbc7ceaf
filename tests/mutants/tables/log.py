"""Mutants of the log: opening, cutting, compacting, reading."""

from tests.mutants.mutant import Breaks, Mutant, table

LOG = table(
    Mutant(
        "the segment that ends at the recovery point is trusted",
        "log/opening.py",
        "following < recovery_point)",
        "following <= recovery_point)",
        Breaks.DURABILITY,
        (
            "unit/log/test_durable_cuts.py::"
            "test_a_segment_that_ends_at_the_recovery_point_may_have_been_cut_there_and_is_checked",
        ),
    ),
    Mutant(
        "epochs beyond the end outlive the opening",
        "log/log.py",
        "        log.epochs.cut_end(log.log_end_offset)\n",
        "",
        Breaks.AGREEMENT,
        ("unit/log/test_durable_cuts.py::test_epochs_of_a_log_whose_segments_are_gone_are_gone_with_them",),
    ),
    Mutant(
        "a swap's old segments go before its names are durable",
        "log/swapping.py",
        "    log.disk.sync([log.directory])\n",
        "",
        Breaks.DURABILITY,
        (
            "unit/log/test_compaction_passes.py::"
            "test_the_names_of_a_swap_are_durable_before_what_it_replaces_is_deleted",
        ),
    ),
    Mutant(
        "the directory is not synced after a swap's names",
        "log/swapping.py",
        "    log.unsynced_others[log.directory] = None\n    gone = ",
        "    gone = ",
        Breaks.DURABILITY,
        ("unit/log/test_compaction_passes.py::test_the_last_names_of_a_swap_are_synced_with_the_log",),
    ),
)
