"""Mutants of the quorum: votes, epochs, the metadata log."""

from tests.mutants.mutant import Breaks, Mutant, table

QUORUM = table(
    Mutant(
        "a vote is forgotten when the leader is known",
        "quorum/quorum.py",
        "voted = self.election.voted if epoch == self.epoch else NOBODY",
        "voted = NOBODY",
        Breaks.ANSWERS,
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
    Mutant(
        "a vote is told before it is durable",
        "quorum/quorum.py",
        "                case Send() | Reply() if self.promises > self.promises_durable:",
        "                case Send() if self.promises > self.promises_durable:",
        Breaks.AGREEMENT,
        ("unit/quorum/test_scripts.py::test_transcript",),
    ),
    Mutant(
        "a second candidate is voted for",
        "quorum/roles.py",
        '                return None if voted == candidate else "has voted for another"',
        "                return None",
        Breaks.AGREEMENT,
        ("unit/quorum/test_elections.py::test_a_vote_is_given_once",),
    ),
    Mutant(
        "an epoch is committed by records of earlier ones",
        "quorum/roles.py",
        "        return reached if reached > self.epoch_start_offset else None",
        "        return reached",
        Breaks.DURABILITY,
        ("unit/quorum/test_scripts.py::test_transcript",),
    ),
    Mutant(
        "a leader counts its own records before they are durable",
        "quorum/leading.py",
        "    committed = role.committed(quorum.durable_end)",
        "    committed = role.committed(quorum.log.log_end_offset)",
        Breaks.DURABILITY,
        ("unit/quorum/test_scripts.py::test_transcript",),
    ),
)
