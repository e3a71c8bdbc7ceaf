"""What the metadata says of partitions: DescribeTopicPartitions asked page by page, as values."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, Uuid
from strandline.base.value import Value
from strandline.client.ask import Servers, ask_any
from strandline.client.errors import BadOption, StrandlineError, refused
from strandline.wire.messages.topics.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)


class Place(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class PartitionState(Value, frozen=True):
    """One partition as the node that answered has it in its image."""

    at: Place
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int = -1
    leader_epoch: int = 0
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    last_known_leader: int = -1
    offline: tuple[int, ...] = ()  # replicas of brokers that are fenced or gone, or whose directory is
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    min_isr: int = -1  # what of min.insync.replicas counts; -1: unknown
    partition_epoch: int = -1  # -1: unknown
    is_recovering: bool = False  # its leader was elected uncleanly
    strategy: str = ""
    is_managed: bool = False
    topic_id: Uuid = ZERO_UUID

    @property
    def is_of_our_own(self) -> bool:
        """Did a node of this program answer? Others do not know the fields that it adds."""
        return self.partition_epoch >= 0

    @property
    def online(self) -> tuple[int, ...]:
        return tuple(node for node in self.replicas if node not in self.offline)

    @property
    def is_unavailable(self) -> bool:
        return self.leader < 0 or self.leader in self.offline

    @property
    def is_under_min_isr(self) -> bool:
        return self.leader < 0 or len(self.isr) < self.min_isr

    @property
    def is_at_min_isr(self) -> bool:
        return len(self.isr) == self.min_isr


def describe_partitions(bootstrap: Servers, names: Iterable[str] = ()) -> list[PartitionState]:
    """These topics' partitions, or all, by name and index. Raises StrandlineError if a named one is not there."""
    wanted, found = tuple(names), []
    for topic in pages(lambda request: ask_any(bootstrap, request, 0), wanted):
        error = ErrorCode(topic.error_code)
        if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and wanted:
            raise StrandlineError(
                f"topic '{topic.name}' does not exist", "`strandline topics list` names those that do"
            )
        if error not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise refused(error, f"topic '{topic.name}'")
        found += states_of(topic)
    return found


def existing_partitions(bootstrap: Servers, names: Iterable[str]) -> list[PartitionState]:
    """As `describe_partitions`, but a name that no topic has, or can have, is left out. Raises StrandlineError if we
    may not see one of them."""
    wanted, found = tuple(names), []
    for topic in pages(lambda request: ask_any(bootstrap, request, 0), wanted) if wanted else ():  # none: all are meant
        error = ErrorCode(topic.error_code)
        if error not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            raise refused(error, f"topic '{topic.name}'")
        found += states_of(topic) if error is ErrorCode.NONE else []
    return found


def pages(
    ask: Callable[[DescribeTopicPartitionsRequest], DescribeTopicPartitionsResponse], names: Iterable[str] = ()
) -> Iterator[DescribeTopicPartitionsResponseTopic]:
    """All of these topics, or of all. One that does not fit on a page comes again with its other partitions."""
    wanted, cursor = tuple(TopicRequest(name=name) for name in names), None
    while True:
        answer = ask(DescribeTopicPartitionsRequest(topics=wanted, cursor=cursor))
        yield from answer.topics
        if answer.next_cursor is None:
            return
        cursor = Cursor(topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index)


def states_of(topic: DescribeTopicPartitionsResponseTopic) -> list[PartitionState]:
    return [state_of(topic, row) for row in topic.partitions]


def state_of(
    topic: DescribeTopicPartitionsResponseTopic, row: DescribeTopicPartitionsResponsePartition
) -> PartitionState:
    return PartitionState(
        at=Place(topic.name or "", row.partition_index),
        replicas=row.replica_nodes,
        isr=row.isr_nodes,
        leader=row.leader_id,
        leader_epoch=row.leader_epoch,
        elr=row.eligible_leader_replicas or (),
        last_known_elr=row.last_known_elr or (),
        last_known_leader=row.last_known_leader,
        offline=row.offline_replicas,
        adding=row.adding_replicas,
        removing=row.removing_replicas,
        min_isr=row.effective_min_isr,
        partition_epoch=row.partition_epoch,
        is_recovering=row.leader_recovery_state == 1,
        strategy=row.recovery_strategy,
        is_managed=row.is_recovery_managed,
        topic_id=topic.topic_id,
    )


def parse_place(text: str) -> tuple[str, int | None]:
    """TOPIC or TOPIC:PARTITION; a topic's name has no colon."""
    topic, colon, index = text.partition(":")
    if not topic or (colon and not index.isdecimal()):
        raise BadOption(f"'{text}' is neither TOPIC nor TOPIC:PARTITION")
    return topic, int(index) if colon else None


def chosen(bootstrap: Servers, text: str) -> list[PartitionState]:
    """The partitions that TOPIC or TOPIC:PARTITION names."""
    topic, index = parse_place(text)
    states = describe_partitions(bootstrap, [topic])
    if index is None:
        return states
    found = [state for state in states if state.at.partition == index]
    if not found:
        raise StrandlineError(f"topic '{topic}' has no partition {index}, but 0 to {len(states) - 1}")
    return found
