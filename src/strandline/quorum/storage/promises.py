"""What this node must not forget, its epoch and its vote, and what may leave it only once that is durable.

Invariants (executed by `check`):
  - the epoch never falls, and an epoch has one vote;
  - nothing leaves this node (Send, Reply) before the epoch and the vote that it rests on are durable;
  - at most one Save is on its way, and while something waits, one is.
"""

from collections.abc import Mapping

from strandline.base.effects import Effect, Endpoint, Reply, Save, Send
from strandline.base.ids import NOBODY, NodeId
from strandline.quorum.elections.election_state import ElectionState, encode_election
from strandline.quorum.elections.epochs import EPOCH_MAX, repaired
from strandline.quorum.tokens import ElectionSaved


class Promises:
    def __init__(self, stored: ElectionState, last_epoch: int) -> None:
        self.saved = stored
        self.election = repaired(stored, last_epoch)
        assert last_epoch <= self.election.epoch <= EPOCH_MAX
        self.count = 0  # changes of epoch or vote
        self.durable = 0  # so many of them
        self.saving: tuple[int, ElectionState] | None = None  # the Save on its way
        self.held: list[tuple[int, Effect]] = []  # what must wait for promises to be durable

    @property
    def are_durable(self) -> bool:
        return self.durable == self.count

    @property
    def is_save_due(self) -> bool:
        return self.election != self.saved or not self.are_durable

    def promise(self, election: ElectionState) -> None:
        """Change what must not be forgotten. A changed epoch or vote must be durable before anyone hears of it."""
        old, self.election = self.election, election
        assert election.epoch >= old.epoch
        assert election.epoch > old.epoch or old.voted in (NOBODY, election.voted), "an epoch has one vote"
        if election.epoch != old.epoch or election.voted != old.voted:
            self.count += 1

    def release(self, out: list[Effect]) -> list[Effect]:
        """What may leave now, of what was held and of `out`."""
        effects: list[Effect] = []
        while self.held and self.held[0][0] <= self.durable:
            effects.append(self.held.pop(0)[1])
        for effect in out:
            match effect:
                case Send() | Reply() if self.count > self.durable:  # guard: vote-told-before-durable
                    self.held.append((self.count, effect))
                case _:
                    effects.append(effect)
        return effects

    def save(self, path: str, cluster_id: str, voters: Mapping[NodeId, Endpoint], applied: int) -> Save:
        """`applied` is the evidence that the file carries too."""
        assert self.saving is None, "one Save at a time"
        self.saving = (self.count, self.election)
        content = encode_election(self.election, cluster_id, voters, applied)
        # Nobody saves this file in a step: none of its saves is ever outdated, and so none says since when it counts.
        return Save(path, content, ElectionSaved())

    def synced(self) -> None:
        assert self.saving is not None, "this Save was asked for"
        self.durable, self.saved = self.saving
        self.saving = None
        assert self.durable <= self.count

    def check(self) -> None:
        assert self.election.epoch <= EPOCH_MAX
        assert self.durable <= self.count
        assert self.saving is not None or not self.held
