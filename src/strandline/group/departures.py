"""Members that are gone, as groups remember them for a while: an operator asks why a group rebalances."""

from typing import Protocol

from strandline.base.time import Instant
from strandline.base.value import Value

DEPARTURES_MAX = 5  # how many members that are gone a group remembers
SHOWN_MAX = 200  # characters of a text from a client that is kept after it has gone


class Departure(Value, frozen=True):
    """A member that is gone. `why` continues a sentence about it."""

    member_id: str
    client_id: str
    client_host: str
    at: Instant
    why: str


class Client(Protocol):
    @property
    def member_id(self) -> str: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...


def departed(member: Client, why: str, now: Instant) -> Departure:
    return Departure(
        member.member_id[:SHOWN_MAX], member.client_id[:SHOWN_MAX], member.client_host[:SHOWN_MAX], now, why[:SHOWN_MAX]
    )
