"""One member of a consumer group, as its records describe it (KIP-848)."""

from collections.abc import Iterable, Mapping
from enum import Enum

from strandline.base.ids import Uuid
from strandline.base.value import Value
from strandline.wire.messages.consumer_groups.records import ClassicMemberMetadata

Partitions = Mapping[Uuid, frozenset[int]]  # by topic id; no topic without partitions
Held = Mapping[Uuid, Mapping[int, int]]  # the same, and for each partition the member epoch in which it was assigned

LEFT = -1  # the epoch of a member that leaves
AWAY = -2  # the epoch of a static member that has left, and will be back
NOTHING: Partitions = {}
NOTHING_HELD: Held = {}


class MemberState(Enum):
    """Kafka's MemberState, with its numbers."""

    STABLE = 0  # it has what the target assignment of its epoch gave it
    UNREVOKED_PARTITIONS = 1  # it must give back partitions before anything else happens
    UNRELEASED_PARTITIONS = 2  # it waits for partitions that another member has not given back yet
    UNKNOWN = 127  # a later version of Kafka wrote it


STATE_BY_NUMBER = {state.value: state for state in MemberState}


class Member(Value, frozen=True):
    """`assigned` are the partitions that it may consume, and `revoking` those that it must give back; it owns both."""

    member_id: str
    instance_id: str | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()  # subscribed to, by name
    regex: str = ""  # subscribed to by what matches it; empty: none
    rebalance_timeout_ms: int = -1
    assignor: str | None = None  # that it prefers
    classic: ClassicMemberMetadata | None = None  # of a member that speaks the classic protocol
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Held = NOTHING_HELD
    revoking: Held = NOTHING_HELD

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def held_since(self, topic_id: Uuid, partition: int) -> int | None:
        """The epoch in which it was assigned a partition that it owns; None if it does not own it."""
        for held in (self.assigned, self.revoking):
            epoch = held.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def pairs(partitions: Partitions | Held) -> Iterable[tuple[Uuid, int]]:
    return ((topic_id, partition) for topic_id, them in partitions.items() for partition in them)


def is_within(part: Partitions, held: Held) -> bool:
    return all(them <= held.get(topic_id, {}).keys() for topic_id, them in part.items())


def without(held: Held, lost: Iterable[tuple[Uuid, int]]) -> Held:
    gone = frozenset(lost)
    left = {
        topic_id: {p: epoch for p, epoch in them.items() if (topic_id, p) not in gone}
        for topic_id, them in held.items()
    }
    return {topic_id: them for topic_id, them in left.items() if them}
