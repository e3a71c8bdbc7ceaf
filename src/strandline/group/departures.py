"""Members that are gone, as groups remember them for a while: an operator asks why a group rebalances."""

from collections import deque
from collections.abc import Collection
from typing import Protocol

from strandline.base.time import Instant
from strandline.base.value import Value

DEPARTURES_MAX = 5  # how many members that are gone a group remembers
SHOWN_MAX = 200  # characters of a text from a client that is kept


class Departure(Value, frozen=True):
    """A member that is gone. `why` continues a sentence about it. `committed`: when it committed for the last time."""

    member_id: str
    client_id: str
    client_host: str
    at: Instant
    why: str
    committed: Instant | None
    rebalance_timeout_ms: int


class Client(Protocol):
    @property
    def member_id(self) -> str: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...
    @property
    def rebalance_timeout_ms(self) -> int: ...


class Departures:
    """Of one group, as this coordinator saw them. The next one does not know them."""

    def __init__(self) -> None:
        self.latest: deque[Departure] = deque(maxlen=DEPARTURES_MAX)  # the last at the end
        self.commits: dict[str, Instant] = {}  # of members, each its last

    def committed(self, member_id: str, members: Collection[str], now: Instant) -> None:
        """`members`: all that there are now."""
        self.commits[member_id] = now
        if len(self.commits) > len(members):  # of no member, or of one that has come back with another id
            self.commits = {known: at for known, at in self.commits.items() if known in members}

    def add(self, member: Client, why: str, now: Instant) -> None:
        self.latest.append(
            Departure(
                member.member_id[:SHOWN_MAX],
                member.client_id[:SHOWN_MAX],
                member.client_host[:SHOWN_MAX],
                now,
                why[:SHOWN_MAX],
                self.commits.pop(member.member_id, None),
                member.rebalance_timeout_ms,
            )
        )


def said(member: Client, what: str) -> str:
    """A sentence about a member, of which a client may have said a part."""
    who = f"{member.member_id[:SHOWN_MAX]} (client {member.client_id[:SHOWN_MAX]})"
    return f"{who} {what[:SHOWN_MAX]}"
