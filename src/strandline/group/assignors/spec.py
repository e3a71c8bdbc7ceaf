"""What an assignor of the group coordinator reads and returns (KIP-848, section "Server-Side Assignors").

An assignor is a pure function of a `GroupSpec`. The order of its mappings does not matter.
"""

from collections.abc import Callable, Mapping

from strandline.base.ids import Uuid
from strandline.base.value import Value

Assignment = dict[str, dict[Uuid, frozenset[int]]]  # by member id and topic id: the partitions of the new target


class MemberSpec(Value, frozen=True):
    """`topics`: the ids of the topics that the member is subscribed to, those of its regular expression too.
    `assigned`: the member's present target, by topic id."""

    topics: frozenset[Uuid]
    rack: str | None = None
    instance_id: str | None = None
    assigned: Mapping[Uuid, frozenset[int]] = {}


class TopicSpec(Value, frozen=True):
    """`racks`: for each partition the racks of its replicas; empty if they are not known."""

    partitions: int
    racks: tuple[frozenset[str], ...] = ()

    def __post_init__(self) -> None:
        assert self.partitions >= 0
        assert len(self.racks) in (0, self.partitions)


class GroupSpec(Value, frozen=True):
    """A topic that a member is subscribed to and that is not in `topics` has no partitions."""

    members: Mapping[str, MemberSpec]
    topics: Mapping[Uuid, TopicSpec]


Assignor = Callable[[GroupSpec], Assignment]
