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
        "a candidate that lacks records is voted for",
        "quorum/voting.py",
        "    return bool((asked.last_offset_epoch, asked.last_offset) >= (mine.epoch, mine.end_offset))",
        "    return bool(asked.last_offset_epoch >= mine.epoch)",
        Breaks.DURABILITY,
        ("property/test_quorum.py::test_three_machines",),
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
    Mutant(
        "a follower claims records before they are durable",
        "quorum/following.py",
        "    if fetching.retry_at > now or not quorum.is_log_durable:\n        return\n",
        "    if fetching.retry_at > now:\n        return\n",
        Breaks.DURABILITY,
        ("unit/quorum/test_scripts.py::test_transcript",),
    ),
    Mutant(
        "a diverging metadata log is taken for a prefix",
        "quorum/leading.py",
        "    return end if end.epoch != epoch or end.end_offset < offset else None",
        "    return end if end.end_offset < offset else None",
        Breaks.DURABILITY,
        ("unit/quorum/test_scripts.py::test_transcript",),
    ),
    Mutant(
        "a pre-vote is granted by who hears from its leader",
        "quorum/roles.py",
        '        case Follower() if role.has_fetched:\n            return "hears from the leader"\n',
        "",
        Breaks.AGREEMENT,
        ("unit/quorum/test_elections.py::test_who_votes_for_an_up_to_date_candidate",),
    ),
    Mutant(
        "a leader that hears nobody goes on",
        "quorum/quorum.py",
        (
            "            case Leader() if self.role.check_quorum_deadline() <= now:\n"
            "                self.become_resigned(now, now_shutting_down=False)\n"
        ),
        "",
        Breaks.AGREEMENT,
        ("unit/quorum/test_scripts.py::test_transcript",),
    ),
    Mutant(
        "the newest snapshot alone is kept",
        "quorum/metadata_log.py",
        "SNAPSHOTS_KEPT = 2",
        "SNAPSHOTS_KEPT = 1",
        Breaks.AGREEMENT,
        ("unit/quorum/test_metadata_log.py::test_log_starts_at_the_older_of_two_snapshots",),
    ),
    Mutant(
        "the log is cut below a snapshot that is not durable",
        "quorum/metadata_log.py",
        "        if len(keep) < SNAPSHOTS_KEPT or self.snapshot_path(keep[0]) in self.unsynced_snapshots:",
        "        if len(keep) < SNAPSHOTS_KEPT:",
        Breaks.DURABILITY,
        (
            "unit/quorum/test_metadata_log.py::"
            "test_a_snapshot_that_is_written_while_the_log_is_synced_is_not_durable_with_it",
        ),
    ),
    Mutant(
        "a snapshot that is torn is believed",
        "quorum/metadata_log.py",
        "            if content is not None and why_incomplete(content) is None:",
        "            if content is not None:",
        Breaks.DURABILITY,
        ("unit/quorum/test_metadata_log.py::test_torn_snapshot_is_removed_at_start",),
    ),
    Mutant(
        "a pre-vote moves the epoch",
        "quorum/voting.py",
        "    if asked.replica_epoch > quorum.epoch and not asked.pre_vote:",
        "    if asked.replica_epoch > quorum.epoch:",
        Breaks.AGREEMENT,
        ("unit/quorum/test_hostile.py::test_one_packet_to_each_voter_leaves_the_quorum_as_it_was",),
        ("A pre-vote changes nobody's epoch",),
    ),
    Mutant(
        "a stored epoch that nobody voted in is taken",
        "quorum/quorum.py",
        "        self.election = repaired(stored, log.last_epoch)\n",
        ("        self.election = stored if stored.epoch >= log.last_epoch else ElectionState(log.last_epoch)\n"),
        Breaks.AGREEMENT,
        ("unit/quorum/test_hostile.py::test_a_poisoned_quorum_begins_again",),
        ("A stored epoch that nobody can have voted in is repaired",),
    ),
)
