"""How far may a message move our epoch, and which stored epoch is not believed?

Epochs are 32-bit numbers, and each election takes one. One message with an epoch near the end would use them all up,
and no voter could ever begin an election again. So an epoch from a peer counts only if it is a step that a real voter
can have taken. With pre-votes (KIP-996) an epoch is taken only after a majority agreed to an election, and an election
takes some milliseconds at least. So the elections that we missed are few: 2^21 of them, one after the other without a
pause, take many hours at the least. An allowance of so many steps never blocks a real voter, however long it was away,
and it is a thousandth of all epochs. It grows back slowly, so that a mad peer that sends message after message needs
eight months to use all epochs up.

Invariants: `left` is never negative, and never above REACH.
"""

from msgspec import Struct

from strandline.base.ids import NOBODY, NodeId
from strandline.base.time import Instant, after
from strandline.quorum.elections.election_state import ElectionState

EPOCH_MAX = (1 << 31) - 1  # the largest that a message, a batch or a checkpoint can hold
REACH = 1 << 21  # by how much messages may move our epoch at once
STEPS_PER_SECOND = 100  # no quorum holds as many elections for long
MARGIN = 1 << 20  # more elections than a voter missed, or voted in, since the last record of its log
REPORT_AGAIN_MS = 60_000


class Allowance(Struct):
    """The steps that messages may still move our epoch by. A process starts with all of them."""

    at: Instant  # when `left` was true
    left: int = REACH
    reported_at: Instant = Instant(-REPORT_AGAIN_MS)

    def steps(self, now: Instant) -> int:
        assert 0 <= self.left <= REACH
        return min(REACH, self.left + (now - self.at) * STEPS_PER_SECOND // 1000)

    def take(self, steps: int, now: Instant) -> None:
        assert steps >= 0
        self.left, self.at = self.steps(now) - steps, now
        assert self.left >= 0, "checked before"

    def is_news(self, now: Instant) -> bool:
        """Is it time to report an error (again)? A peer that sends nonsense sends a lot of it."""
        is_due = after(self.reported_at, REPORT_AGAIN_MS) <= now
        if is_due:
            self.reported_at = now
        return is_due


def repaired(stored: ElectionState, last_epoch: int) -> ElectionState:
    """What counts of the file `quorum-state` of a log whose last record has `last_epoch`.

    Versions without an allowance could be moved to the last epochs by one message. Two states that they left are not
    believed, because nothing that this voter promised in them matters to anybody:
      - an epoch that no message can hold: its voter made it up and voted for itself, and could not send it;
      - the very last epoch, without a vote: nobody was elected in it with a vote of ours, and our log has none of its
        records.
    But the file has also forgotten the vote in the last real epoch, and that vote must not be given twice. So the voter
    does not go back to where its log ends. It goes to an epoch that is later than all in which it can have voted,
    MARGIN steps after its log's. In that epoch it has not voted. A log that has records of the last epoch proves that
    somebody was elected in it: then nothing is repaired.
    """
    assert last_epoch <= EPOCH_MAX, "no batch bears a later one"
    if stored.epoch < last_epoch:
        return ElectionState(last_epoch)
    is_poisoned = stored.epoch > EPOCH_MAX or (stored.epoch == EPOCH_MAX and stored.voted == NOBODY)
    if is_poisoned and last_epoch + MARGIN < EPOCH_MAX:
        return ElectionState(last_epoch + MARGIN)
    if stored.epoch > EPOCH_MAX:
        return ElectionState(EPOCH_MAX, NOBODY, NodeId(stored.voted))
    return stored
