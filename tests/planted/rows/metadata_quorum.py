"""Bugs of the metadata quorum (KRaft): votes, commits, truncation, durability."""

from tests.planted.changes import ALWAYS, NEVER, Gives, Swap, Without
from tests.planted.planted import Planted, table

METADATA_QUORUM = table(
    # --- votes
    Planted(
        name="votes-twice",
        how=ALWAYS,
        trap="Raft 5.2",
        harm="an epoch has two leaders",
        seeds=(5, 5),
    ),
    Planted(
        name="vote-forgotten-at-restart",
        how=Swap("stored.voted_id", "NOBODY"),
        trap="Raft 5.2",
        harm="a voter that was restarted votes again in the same epoch",
        seeds=(22, 22),
        plan="vote-forgotten-at-restart.json",
    ),
    Planted(
        name="vote-told-before-durable",
        how=NEVER,
        trap="Raft 5.2",
        harm="a vote is given that a crash forgets, and given again",
        seeds=(2, 2),
        plan="vote-told-before-durable.json",
    ),
    Planted(
        name="votes-for-a-shorter-log",
        guard="log-is-up-to-date",
        how=Gives("bool(asked.last_offset_epoch >= mine.epoch)"),
        trap="Raft 5.4.1",
        harm="a voter elects a leader that lacks committed metadata",
        seeds=(11, 11),
        plan="votes-for-a-shorter-log.json",
    ),
    Planted(
        name="votes-for-an-older-log",
        guard="log-is-up-to-date",
        how=Gives("bool(asked.last_offset >= mine.end_offset)"),
        trap="Raft 5.4.1",
        harm="a long log of a deposed leader wins over a shorter one that has what was committed",
        seeds=(6, 6),
        plan="votes-for-an-older-log.json",
    ),
    Planted(
        name="damaged-voter-votes",
        how=Without("impairment"),
        trap="Raft 5.4.1",
        harm="a voter that lost committed metadata elects a leader that lacks it too",
        seeds=(1, 3),
        plan="damaged-voter-votes.json",
    ),
    Planted(
        name="lost-metadata-unnoticed",
        how=NEVER,
        trap="Raft 5.4.1",
        harm="a voter whose metadata log was cut while it was down elects a leader that lacks the same",
        seeds=(1, 3),
        plan="damaged-voter-votes.json",
    ),
    # --- commits
    Planted(
        name="older-epoch-committed-by-counting",
        how=ALWAYS,
        trap="Raft 5.4.2",
        harm="records of an earlier epoch count as committed and are still overwritten",
        seeds=(13, 13),
        plan="older-epoch-committed-by-counting.json",
    ),
    Planted(
        name="minority-commits",
        how=Swap("1", "2"),
        trap="Raft 5.3",
        harm="the leader alone commits metadata",
        seeds=(1, 1),
    ),
    Planted(
        name="leader-counts-unsynced-records",
        how=Swap("durability.end", "log.log_end_offset"),
        trap="KIP-595",
        harm="metadata is committed that a power cut takes from the leader",
        seeds=(1, 1),
    ),
    Planted(
        name="follower-claims-unsynced-records",
        how=Without("is_complete"),
        trap="KIP-595",
        harm="metadata is committed that a power cut takes from the followers",
        seeds=(1, 1),
    ),
    Planted(
        name="follower-believes-any-high-watermark",
        how=Swap("answer.high_watermark", "quorum.log.log_end_offset"),
        trap="Raft 5.3",
        harm="a follower applies metadata that is not committed",
        seeds=(10, 10),
    ),
    # --- truncation
    Planted(
        name="divergent-metadata-unnoticed",
        how=Without("epoch"),
        trap="Raft 5.3, KIP-595",
        harm="a follower appends to records that its leader never had",
        seeds=(69, 69),
        plan="divergent-metadata-unnoticed.json",
    ),
    Planted(
        name="divergent-metadata-kept",
        how=NEVER,
        trap="Raft 5.3",
        harm="a follower never gives up its own records and never follows again",
        seeds=(2, 2),
    ),
)
