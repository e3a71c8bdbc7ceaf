"""Groups as values, whichever protocol they use."""

from strandline.base.errors import ErrorCode
from strandline.base.value import Value
from strandline.client.admin.partitions import Place
from strandline.client.brokers import Silence
from strandline.wire.messages.consumer_groups.progress import GroupProgress

CLASSIC, CONSUMER = "classic", "consumer"
TYPES = (CLASSIC, CONSUMER, "share", "streams")  # as Kafka names them
DEAD, EMPTY = "Dead", "Empty"
AWAY = -2  # the epoch of a static member that has left, and will be back
# By the type that has them, first the classic one.
STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", DEAD, EMPTY, "Assigning", "Reconciling")


class Listed(Value, frozen=True):
    """A group, as its coordinator lists it."""

    group_id: str
    type: str
    protocol_type: str
    state: str
    coordinator: int


class Member(Value, frozen=True):
    """`assigned`: what it reads now. The members of the consumer protocol also have an epoch, and partitions that they
    are to read (`target`), and may be subscribed to what matches an expression (`regex`)."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None
    subscribed: tuple[str, ...] = ()
    assigned: tuple[Place, ...] = ()
    epoch: int | None = None
    target: tuple[Place, ...] | None = None
    regex: str = ""

    @property
    def named(self) -> str:
        """For a sentence."""
        static = f", instance {self.instance_id}" if self.instance_id is not None else ""
        return f"{self.member_id} (client {self.client_id} at {self.host.removeprefix('/')}{static})"


class GroupState(Value, frozen=True):
    """A group as its coordinator describes it. `epoch`: of the group, in the consumer protocol. `progress`: only from
    nodes of this program."""

    group_id: str
    coordinator: int
    type: str
    state: str
    protocol_type: str = ""
    assignor: str = ""
    members: tuple[Member, ...] = ()
    epoch: int | None = None
    progress: GroupProgress | None = None

    @property
    def is_there(self) -> bool:
        return self.state != DEAD

    def owners(self) -> dict[Place, Member]:
        return {at: member for member in self.members for at in member.assigned}


# A group, or why its coordinator does not describe it.
Described = GroupState | ErrorCode | Silence
