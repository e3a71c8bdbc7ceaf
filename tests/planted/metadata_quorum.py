"""Bugs of the metadata quorum (KRaft): votes, commits, truncation, durability."""

from tests.planted.planted import Planted, table

STATE = "strandline.quorum.state"
ROLES = "strandline.quorum.roles"
VOTING = "strandline.quorum.voting"
LEADING = "strandline.quorum.leading"
FOLLOWING = "strandline.quorum.following"

METADATA_QUORUM = table(
    # --- votes
    Planted(
        name="votes-twice",
        module=ROLES,
        old='return None if voted == candidate else "has voted for another"',
        new="return None",
        trap="Raft 5.2",
        harm="an epoch has two leaders",
        seeds=(5, 5),
    ),
    Planted(
        name="vote-forgotten-at-restart",
        module="strandline.quorum.elections.election_state",
        old="NodeId(stored.leader_id), NodeId(stored.voted_id))",
        new="NodeId(stored.leader_id))",
        trap="Raft 5.2",
        harm="a voter that was restarted votes again in the same epoch",
        seeds=(21, 21),
        plan="vote-forgotten-at-restart.json",
    ),
    Planted(
        name="vote-told-before-durable",
        module="strandline.quorum.storage.promises",
        old="case Send() | Reply() if self.count > self.durable:",
        new="case Send() | Reply() if self.count < self.durable:",
        trap="Raft 5.2",
        harm="a vote is given that a crash forgets, and given again",
        seeds=(2, 2),
        plan="vote-told-before-durable.json",
    ),
    Planted(
        name="votes-for-a-shorter-log",
        module=VOTING,
        old="return bool((asked.last_offset_epoch, asked.last_offset) >= (mine.epoch, mine.end_offset))",
        new="return bool(asked.last_offset_epoch >= mine.epoch)",
        trap="Raft 5.4.1",
        harm="a voter elects a leader that lacks committed metadata",
        seeds=(8, 8),
        plan="votes-for-a-shorter-log.json",
    ),
    Planted(
        name="votes-for-an-older-log",
        module=VOTING,
        old="return bool((asked.last_offset_epoch, asked.last_offset) >= (mine.epoch, mine.end_offset))",
        new="return bool(asked.last_offset >= mine.end_offset)",
        trap="Raft 5.4.1",
        harm="a long log of a deposed leader wins over a shorter one that has what was committed",
        seeds=(6, 6),
        plan="votes-for-an-older-log.json",
    ),
    Planted(
        name="damaged-voter-votes",
        module=STATE,
        old="return self.is_voter and self.evidence.impairment is None",
        new="return self.is_voter",
        trap="Raft 5.4.1",
        harm="a voter that lost committed metadata elects a leader that lacks it too",
        seeds=(1, 3),
        plan="damaged-voter-votes.json",
    ),
    Planted(
        name="lost-metadata-unnoticed",
        module="strandline.quorum.storage.evidence",
        old="elif not why and log.log_end_offset < applied:",
        new="elif not why and log.log_end_offset < 0:",
        trap="Raft 5.4.1",
        harm="a voter whose metadata log was cut while it was down elects a leader that lacks the same",
        seeds=(1, 3),
        plan="damaged-voter-votes.json",
    ),
    # --- commits
    Planted(
        name="older-epoch-committed-by-counting",
        module=ROLES,
        old="return reached if reached > self.epoch_start_offset else None",
        new="return reached",
        trap="Raft 5.4.2",
        harm="records of an earlier epoch count as committed and are still overwritten",
        seeds=(13, 13),
        plan="older-epoch-committed-by-counting.json",
    ),
    Planted(
        name="minority-commits",
        module=ROLES,
        old="[majority(len(ends)) - 1]",
        new="[majority(len(ends)) - 2]",
        trap="Raft 5.3",
        harm="the leader alone commits metadata",
        seeds=(1, 1),
    ),
    Planted(
        name="leader-counts-unsynced-records",
        module=LEADING,
        old="committed = role.committed(quorum.durability.end)",
        new="committed = role.committed(quorum.log.log_end_offset)",
        trap="KIP-595",
        harm="metadata is committed that a power cut takes from the leader",
        seeds=(1, 1),
    ),
    Planted(
        name="follower-claims-unsynced-records",
        module=FOLLOWING,
        old="if fetching.retry_at > now or not quorum.durability.is_complete:",
        new="if fetching.retry_at > now:",
        trap="KIP-595",
        harm="metadata is committed that a power cut takes from the followers",
        seeds=(1, 1),
    ),
    Planted(
        name="follower-believes-any-high-watermark",
        module=FOLLOWING,
        old="max(quorum.high_watermark, min(answer.high_watermark, quorum.log.log_end_offset))",
        new="max(quorum.high_watermark, quorum.log.log_end_offset)",
        trap="Raft 5.3",
        harm="a follower applies metadata that is not committed",
        seeds=(1, 19),
    ),
    # --- truncation
    Planted(
        name="divergent-metadata-unnoticed",
        module=LEADING,
        old="return end if end.epoch != epoch or end.end_offset < offset else None",
        new="return end if end.end_offset < offset else None",
        trap="Raft 5.3, KIP-595",
        harm="a follower appends to records that its leader never had",
        seeds=(69, 69),
        plan="divergent-metadata-unnoticed.json",
    ),
    Planted(
        name="divergent-metadata-kept",
        module=FOLLOWING,
        old="    if end < quorum.log.log_end_offset:\n",
        new="    if end < quorum.high_watermark:\n",
        trap="Raft 5.3",
        harm="a follower never gives up its own records and never follows again",
        seeds=(2, 2),
    ),
)
