"""Mutants of replication: leaders, followers, their logs' durability."""

from tests.mutants.mutant import Breaks, Mutant, table

REPLICA = table(
    Mutant(
        "records are deleted up to the log's end",
        "replica/offsets.py",
        "if not 0 <= offset <= leader.high_watermark:",
        "if not 0 <= offset <= leader.log.log_end_offset:",
        Breaks.DURABILITY,
        ("unit/replica/test_offsets.py::test_what_the_leader_has_and_its_followers_lack_cannot_be_deleted",),
    ),
    Mutant(
        "replicas are not taken from metadata that an answer has overtaken",
        "replica/leader.py",
        "if partition.partition_epoch >= self.partition_epoch:",
        "if partition.partition_epoch > self.partition_epoch:",
        Breaks.AGREEMENT,
        ("unit/replica/test_alterations.py::test_metadata_that_the_answer_has_overtaken_still_says_who_is_a_replica",),
    ),
    Mutant(
        "a cut of one committed record is not noted",
        "replica/follower.py",
        "if cut.target < high_watermark:\n            events.append(self.loss(cut.target, high_watermark, EXACTLY",
        "if cut.target < high_watermark - 1:\n            events.append(self.loss(cut.target, high_watermark, EXACTLY",
        Breaks.ANSWERS,
        ("unit/replica/test_losing.py::test_a_cut_of_a_single_committed_record_is_noted_too",),
        ("Loss is counted, and written down durably, before the cut",),
    ),
    Mutant(
        "an answer about another leader epoch is taken",
        "replica/alterations.py",
        "            if row.leader_epoch != leader.epoch:\n                return False\n",
        "",
        Breaks.AGREEMENT,
        (
            "unit/replica/test_alterations.py::"
            "test_an_answer_that_names_another_leader_epoch_is_dropped_though_the_proposal_is_the_one_that_was_asked",
        ),
        ("An answer about an earlier leadership is dropped",),
    ),
    Mutant(
        "a flush vouches for what was cut and written anew meanwhile",
        "replica/storage.py",
        "was == (end, hosted.role, cuts_of(hosted)):",
        "was[:2] == (end, hosted.role):",
        Breaks.DURABILITY,
        ("unit/replica/test_storage.py::test_a_sync_says_nothing_about_what_was_cut_and_written_anew_meanwhile",),
    ),
)
