"""The replicas that lost records, as this broker knows, until metadata has them out of ISR and ELR."""

from collections.abc import Collection

from strandline.base.ids import NodeId, TopicIdPartition
from strandline.base.value import Value
from strandline.metadata.image import Partition
from strandline.metadata.losses import NO_END, Cause, is_written, withdrawal


class Withdrawn(Value, frozen=True):
    """What a replica lost."""

    start: int
    end: int
    cause: Cause
    time_ms: int
    cut_at: int | None = None  # its log is good only below this, and is still to be cut there

    @property
    def was_taking_part(self) -> bool:
        """It was found while its broker ran: what it had fetched before may bring it into the ISR yet."""
        return self.cut_at is not None


class Withdrawals:
    def __init__(self, me: NodeId) -> None:
        self.me = me
        self.held: dict[TopicIdPartition, Withdrawn] = {}
        self.news: dict[TopicIdPartition, Withdrawn] = {}  # that are still to be reported to the controller

    def add(self, at: TopicIdPartition, lost: Withdrawn) -> None:
        """The first finding of a replica counts until it takes part again."""
        assert lost.end == NO_END or lost.start <= lost.end, at
        assert lost.cut_at is None or lost.cut_at >= 0
        if at not in self.held:
            self.held[at] = self.news[at] = lost

    def forget(self, at: TopicIdPartition) -> None:
        self.held.pop(at, None)
        self.news.pop(at, None)

    def holds(self, at: TopicIdPartition, partition: Partition) -> bool:
        """Is it still to be taken from ISR and ELR, for all that metadata says?"""
        lost = self.held.get(at)
        if lost is None:
            return False
        event = withdrawal(self.me, lost.start, lost.end, lost.cause, lost.time_ms, 0)
        may_be_member = lost.was_taking_part or self.me in partition.isr + partition.elr
        return may_be_member and not is_written(event, partition.withdrawals)

    def registered(self, unreported: Collection[TopicIdPartition]) -> None:
        """Metadata has this broker's registration, which took from ISR and ELR what it reported. A replica that is a
        member now became one after it, by an election that knew; what is `unreported` is still to come."""
        for at, lost in list(self.held.items()):
            if not (lost.was_taking_part or at in unreported or at in self.news):
                self.forget(at)

    def take_news(self) -> dict[TopicIdPartition, Withdrawn]:
        assert self.news.keys() <= self.held.keys()
        news, self.news = self.news, {}
        return news

    def check(self) -> None:
        assert self.news.keys() <= self.held.keys()
        assert all(self.held[at] is lost for at, lost in self.news.items()), "the first finding counts"
