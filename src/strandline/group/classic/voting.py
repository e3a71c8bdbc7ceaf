"""Which protocols the members of a classic group support, and which one they choose."""

from collections import Counter
from collections.abc import Collection

from strandline.group.classic.member import Member


class Support:
    """Of each protocol, how many members support it: so a question costs what is asked, and not what the group has."""

    def __init__(self) -> None:
        self.members = 0
        self.supporters: Counter[str] = Counter()

    def add(self, protocols: Collection[str]) -> None:
        self.members += 1
        for name in protocols:
            self.supporters[name] += 1

    def remove(self, protocols: Collection[str]) -> None:
        assert self.members > 0
        self.members -= 1
        for name in protocols:
            assert self.supporters[name] > 0
            self.supporters[name] -= 1
            if not self.supporters[name]:
                del self.supporters[name]

    def is_fitting(self, protocols: Collection[str], without: Collection[str] | None) -> bool:
        """Do all members support one of these? `without`: not asked is the one that supports these."""
        own, others = without or (), self.members - (without is not None)
        assert others >= 0
        return any(self.supporters[name] - (name in own) == others for name in protocols)

    def check(self, of_members: Collection[Collection[str]]) -> None:
        assert self.members == len(of_members)
        assert self.supporters == Counter(name for protocols in of_members for name in protocols)


def common_protocols(members: list[Member]) -> set[str]:
    assert members, "the protocols of nobody are not asked for"
    common = set(members[0].protocols)
    for member in members[1:]:
        common &= member.protocols.keys()
    return common


def vote(members: list[Member]) -> str:
    """Each member votes for the first of its protocols that all support."""
    assert members, "somebody votes"
    common = common_protocols(members)
    votes: dict[str, int] = {}
    for member in members:
        choice = next(p for p in member.protocols if p in common)
        votes[choice] = votes.get(choice, 0) + 1
    assert sum(votes.values()) == len(members), "each has one vote"
    return max(votes, key=lambda p: votes[p])
