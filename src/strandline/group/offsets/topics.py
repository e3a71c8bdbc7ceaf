"""Which topics and partitions there are, for the coordinator: offsets are committed for these alone, and held to them.

A committed offset is about the topic that bore the name when it was committed. Its tombstone is written when that topic
is deleted; but the coordinator may have been down, or the write may fail. So an offset counts only while the topic of
its id is there: a topic that is created anew under the name is read from its beginning.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from strandline.base.ids import ZERO_UUID, Uuid
from strandline.group.offsets.offsets import CommittedOffset, Offsets
from strandline.metadata.image import Image
from strandline.wire.messages.groups.offset_commit import OffsetCommitRequest
from strandline.wire.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest


class Topics:
    def __init__(self) -> None:
        self.image = Image()

    def known(self, request: OffsetCommitRequest | TxnOffsetCommitRequest) -> dict[tuple[str, int], Uuid]:
        """Those partitions of a commit that there are, with their topics' ids."""
        return {
            (row.name, p.partition_index): topic.topic_id
            for row in request.topics
            if (topic := self.image.topic_named(row.name)) is not None
            for p in row.partitions
            if p.partition_index in topic.partitions
        }

    def named(self, request: OffsetCommitRequest) -> OffsetCommitRequest:
        """A commit by topic ids, with the topics' names too; none where no topic has the id."""
        rows = tuple(replace(row, name=self.name_of(row.topic_id)) for row in request.topics)
        return replace(request, topics=rows)

    def name_of(self, topic_id: Uuid) -> str:
        topic = self.image.topics.get(topic_id)
        return "" if topic is None else topic.name

    def ids_of(self, names: Iterable[str]) -> dict[str, Uuid]:
        return {name: self.image.topic_ids.get(name, ZERO_UUID) for name in names}

    def is_current(self, name: str, committed: CommittedOffset) -> bool:
        """Is it about a topic that is there? An older record names no id: the name must do."""
        topic_id = self.image.topic_ids.get(name)
        return topic_id is not None and committed.topic_id in (topic_id, ZERO_UUID)

    def current(self, offsets: Offsets) -> Offsets:
        return {at: committed for at, committed in offsets.items() if self.is_current(at[0], committed)}

    def outdated(self, offsets: Offsets) -> list[tuple[str, int]]:
        return [at for at, committed in offsets.items() if not self.is_current(at[0], committed)]
