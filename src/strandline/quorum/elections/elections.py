"""Who has won? The tally of one round of votes, and whom to ask (again) when.

Invariants: a voter is counted once; a round is never both won and lost.
"""

from collections.abc import Iterable

from msgspec import Struct

from strandline.base.ids import NodeId
from strandline.base.time import NEVER, Instant


def majority(voters: int) -> int:
    assert voters > 0, "a quorum has voters"
    return voters // 2 + 1


class Tally(Struct):
    """The answers of one round. A voter's first answer counts."""

    voters: tuple[NodeId, ...]
    granted: list[NodeId]
    rejected: list[NodeId]
    absent: list[NodeId]  # no process listens there; it may come back within the round

    def grant(self, voter: NodeId) -> None:
        assert not (voter in self.granted and voter in self.rejected)
        if voter in self.voters and voter not in self.granted and voter not in self.rejected:
            self.granted.append(voter)

    def reject(self, voter: NodeId) -> None:
        assert not (voter in self.granted and voter in self.rejected)
        if voter in self.voters and voter not in self.granted and voter not in self.rejected:
            self.rejected.append(voter)

    def is_won(self) -> bool:
        assert len(self.granted) + len(self.rejected) <= len(self.voters)
        return len(self.granted) >= majority(len(self.voters))

    def is_lost(self) -> bool:
        """Even with all outstanding votes it could no longer be won."""
        return len(self.voters) - len(self.rejected) < majority(len(self.voters))

    def is_hopeless(self) -> bool:
        """It could be won only with voters that are down: of two survivors that each voted for itself, say."""
        open_votes = [voter for voter in self.voters if voter not in self.rejected and voter not in self.absent]
        return len(open_votes) < majority(len(self.voters))

    def check(self) -> None:
        assert not (self.is_won() and self.is_lost())
        assert not [voter for voter in self.granted if voter in self.rejected]


def tally(voters: Iterable[NodeId]) -> Tally:
    counted = tuple(voters)
    assert len(set(counted)) == len(counted), "a voter is counted once"
    return Tally(counted, [], [], [])


class Outreach(Struct):
    """Which peers still owe an answer, and when each is asked next; NEVER while a question is on its way."""

    due: dict[NodeId, Instant]

    def take(self, now: Instant) -> list[NodeId]:
        """The peers to ask now."""
        peers = [peer for peer, at in self.due.items() if at <= now]
        for peer in peers:
            self.due[peer] = NEVER
        assert self.deadline() > now, "whoever is due is asked"
        return peers

    def again(self, peer: NodeId, at: Instant) -> None:
        if peer in self.due:
            self.due[peer] = at

    def done(self, peer: NodeId) -> None:
        self.due.pop(peer, None)

    def deadline(self) -> Instant:
        return min(self.due.values(), default=NEVER)


def outreach(peers: Iterable[NodeId], now: Instant) -> Outreach:
    return Outreach(dict.fromkeys(peers, now))
