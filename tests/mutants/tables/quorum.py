"""Mutants of the quorum: votes, epochs, the metadata log."""

from tests.mutants.mutant import Breaks, Mutant, table

QUORUM = table(
    Mutant(
        "a vote is forgotten when the leader is known",
        "quorum/quorum.py",
        "voted = self.election.voted if epoch == self.epoch else NOBODY",
        "voted = NOBODY",
        Breaks.ANSWERS,  # the leader that the file names keeps others from a vote, too
        ("unit/quorum/test_scripts.py::test_transcript[kept_vote]",),
    ),
    Mutant(
        "a snapshot that is written during a sync counts as durable",
        "quorum/metadata_log.py",
        "        if not self.is_dirty:\n            self.unsynced_snapshots.clear()\n",
        "        self.unsynced_snapshots.clear()\n",
        Breaks.DURABILITY,
        (
            "unit/quorum/test_metadata_log.py::"
            "test_a_snapshot_that_is_written_while_the_log_is_synced_is_not_durable_with_it",
        ),
    ),
    Mutant(
        "a second leader of an epoch is accepted",
        "quorum/voting.py",
        "epoch == quorum.epoch and quorum.election.leader not in (NOBODY, leader)",
        "epoch == quorum.epoch and quorum.election.leader not in (NOBODY, leader) and False",
        Breaks.AGREEMENT,
        ("unit/quorum/test_scripts.py::test_transcript[one_leader]",),
    ),
)
