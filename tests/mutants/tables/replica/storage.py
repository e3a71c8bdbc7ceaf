"""Mutants of what lies on disk, and of its repair."""

from tests.mutants.mutant import Breaks, Mutant, table

STORAGE = table(
    Mutant(
        "what a replica without a broker has counts as lost",
        "replica/scrubbing/repairs.py",
        """            if endpoint is None:
                repair.is_final = False
""",
        """            if endpoint is None:
""",
        Breaks.DURABILITY,
        ("unit/replica/scrubbing/test_scrubbing.py::test_nor_while_a_replica_has_no_broker_that_could_be_asked",),
    ),
    Mutant(
        "what was lost is not counted",
        "broker/metrics/gauges.py",
        "repairs.repaired, repairs.lost)",
        "repairs.repaired, 0)",
        Breaks.ANSWERS,
        ("unit/replica/scrubbing/test_scrubbing.py::test_a_single_replica_has_nobody_to_ask",),
    ),
    Mutant(
        "a flush vouches for what was cut and written anew meanwhile",
        "replica/storage/flushing.py",
        "was == (end, hosted.role, cuts_of(hosted)):",
        "was[:2] == (end, hosted.role):",
        Breaks.DURABILITY,
        (
            "unit/replica/storage/test_storage.py::test_a_sync_says_nothing_about_what_was_cut_and_written_anew_meanwhile",
        ),
    ),
    Mutant(
        "the high watermark of a checkpoint is believed beyond the log",
        "replica/storage/opening/loading.py",
        ("        high_watermark = min(max(found.high_watermark, log.log_start_offset), log.log_end_offset)\n"),
        "        high_watermark = max(found.high_watermark, log.log_start_offset)\n",
        Breaks.DURABILITY,
        ("kip/test_chapter.py::test_1_the_high_watermark_is_monotonic_on_a_given_log_and_never_exceeds_its_end",),
        ("The high watermark never falls on a given log, and never exceeds its end",),
    ),
    Mutant(
        "high watermarks are not saved",
        "replica/storage/storage.py",
        "            Every(config.high_watermark_checkpoint_interval_ms, self.checkpoints.save_high_watermarks),\n",
        "",
        Breaks.DURABILITY,
        (
            (
                "unit/replica/storage/test_storage.py::test_high_watermarks_are_saved_every_five_seconds_if_they_have_changed"
            ),
            (
                "unit/replica/storage/test_namesakes.py::test_a_new_topic_does_not_inherit_the_checkpoints_of_its_namesake"
            ),
        ),
        ("The high watermark is saved every 5 s and at a stop",),
    ),
    Mutant(
        "a flush vouches in another role",
        "replica/storage/flushing.py",
        "was == (end, hosted.role, cuts_of(hosted)):",
        "(was[0], was[2]) == (end, cuts_of(hosted)):",
        Breaks.DURABILITY,
        ("unit/replica/storage/test_storage.py::test_a_sync_of_one_role_says_nothing_about_what_was_cut_in_the_next",),
    ),
    Mutant(
        "an old recovery point stays after a cut",
        "replica/storage/checkpoints.py",
        (
            "            self.save_now(log_dir, RECOVERY_POINTS, self.recovery_points(log_dir))\n"
            "            if self.host"
        ),
        "            if self.host",
        Breaks.DURABILITY,
        ("unit/replica/storage/test_storage.py::test_a_saved_recovery_point_falls_with_the_log_that_is_cut",),
    ),
    Mutant(
        "a deleted topic's checkpoints speak for its namesake",
        "replica/storage/checkpoints.py",
        "        if name not in self.listed:\n            return\n        self.listed = {}\n",
        "        return\n",
        Breaks.DURABILITY,
        ("unit/replica/storage/test_namesakes.py::test_a_new_topic_does_not_inherit_the_checkpoints_of_its_namesake",),
    ),
)
