"""OffsetCommit and OffsetFetch version 10: topics go by their ids."""

from typing import Any

from tests.unit.group.coordination import Coordination, commit_request

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import ZERO_UUID, Uuid
from strandline.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

BY_ID = 10
NOWHERE = Uuid(b"\xff" * 16)


def commit(c: Coordination, *topics: tuple[Uuid, int]) -> list[tuple[Uuid, int, E]]:
    rows = tuple(
        OffsetCommitRequestTopic(
            topic_id=topic_id, partitions=(OffsetCommitRequestPartition(partition_index=index, committed_offset=5),)
        )
        for topic_id, index in topics
    )
    answer = c.ask(OffsetCommitRequest(group_id="g", topics=rows), BY_ID)
    return [(t.topic_id, row.partition_index, E(row.error_code)) for t in answer.topics for row in t.partitions]


def fetch(c: Coordination, *topic_ids: Uuid, all_topics: bool = False) -> list[tuple[Uuid, int, int, E]]:
    wanted = tuple(OffsetFetchRequestTopics(topic_id=one, partition_indexes=(0,)) for one in topic_ids)
    group = OffsetFetchRequestGroup(group_id="g", topics=None if all_topics else wanted)
    (answer,) = c.ask(OffsetFetchRequest(groups=(group,)), BY_ID).groups
    assert answer.error_code == E.NONE

    def row(topic: Any, found: Any) -> tuple[Uuid, int, int, E]:
        return topic.topic_id, found.partition_index, found.committed_offset, E(found.error_code)

    return [row(topic, found) for topic in answer.topics for found in topic.partitions]


def test_a_commit_names_topics_by_id_and_each_unknown_one_is_refused_by_itself() -> None:
    c = Coordination()
    t = c.image.topic_ids["t"]
    assert commit(c, (t, 0), (NOWHERE, 0), (t, 9), (ZERO_UUID, 0)) == [
        (t, 0, E.NONE),
        (NOWHERE, 0, E.UNKNOWN_TOPIC_ID),
        (t, 9, E.UNKNOWN_TOPIC_OR_PARTITION),
        (ZERO_UUID, 0, E.UNKNOWN_TOPIC_ID),
    ]
    assert {at: row.offset for at, row in c.reload().offsets["g"].items()} == {("t", 0): 5}


def test_a_commit_for_a_topic_that_was_created_again_is_refused() -> None:
    c = Coordination()
    old = c.image.topic_ids["t"]
    c.delete("t")
    c.create("t")
    assert commit(c, (old, 0)) == [(old, 0, E.UNKNOWN_TOPIC_ID)]
    assert c.ask(commit_request(7), 9).topics[0].partitions[0].error_code == E.NONE, "by its name it is another topic"


def test_a_fetch_names_topics_by_id_in_question_and_answer() -> None:
    c = Coordination()
    t, u = (c.image.topic_ids[name] for name in ("t", "u"))
    commit(c, (t, 0))
    assert sorted(fetch(c, u, NOWHERE, t)) == sorted(
        [(u, 0, -1, E.NONE), (NOWHERE, 0, -1, E.UNKNOWN_TOPIC_ID), (t, 0, 5, E.NONE)]
    )
    assert fetch(c, all_topics=True) == [(t, 0, 5, E.NONE)]
    c.delete("t")
    assert fetch(c, t) == [(t, 0, -1, E.UNKNOWN_TOPIC_ID)]
    assert fetch(c, all_topics=True) == []
