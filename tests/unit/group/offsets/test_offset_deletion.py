"""OffsetDelete: which offsets may go, when that is answered, and what a new coordinator finds."""

from typing import Any

from tests.rows import each
from tests.unit.group.consuming import Consumers
from tests.unit.group.coordination import Coordination, commit_request, pending_request

from strandline.base.errors import ErrorCode as E
from strandline.wire.messages.groups.consumer_protocol import ConsumerProtocolSubscription, encode_embedded
from strandline.wire.messages.groups.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

READS_T = encode_embedded(ConsumerProtocolSubscription(topics=("t",)), 0)


def request(*topics: str, group_id: str = "g", partitions: tuple[int, ...] = (0,)) -> OffsetDeleteRequest:
    rows = tuple(OffsetDeleteRequestPartition(partition_index=index) for index in partitions)
    return OffsetDeleteRequest(
        group_id=group_id, topics=tuple(OffsetDeleteRequestTopic(name=name, partitions=rows) for name in topics)
    )


def errors(answer: Any) -> dict[tuple[str, int], E]:
    assert answer.error_code == E.NONE
    return {(t.name, row.partition_index): E(row.error_code) for t in answer.topics for row in t.partitions}


def offsets(c: Coordination) -> dict[tuple[str, int], int]:
    memory = {at: row.offset for at, row in c.shard.offsets.get("g", {}).items()}
    log = {at: row.offset for at, row in c.reload().offsets.get("g", {}).items()}
    assert memory == log, "the next coordinator finds the same"
    return memory


def with_offsets() -> Coordination:
    c = Coordination()
    for topic in ("t", "u"):
        for partition in (0, 1):
            c.ask(commit_request(5, topic=topic, partition=partition), 9)
    return c


def test_an_offset_is_deleted_and_answered_when_that_is_written() -> None:
    c = with_offsets()
    number = c.send(request("t"))
    assert number not in c.answers and ("t", 0) in c.shard.offsets["g"]
    c.commit()
    assert errors(c.answers[number]) == {("t", 0): E.NONE}
    assert offsets(c) == {("t", 1): 5, ("u", 0): 5, ("u", 1): 5}
    assert errors(c.ask(request("t", "u", partitions=(0, 1)))) == dict.fromkeys(
        [("t", 0), ("t", 1), ("u", 0), ("u", 1)], E.NONE
    )
    assert offsets(c) == {}
    assert c.ask(request("t")).error_code == E.GROUP_ID_NOT_FOUND, "it only ever had offsets"


def test_what_is_not_there_is_deleted_already_and_an_unknown_partition_is_an_error() -> None:
    c = with_offsets()
    written = len(c.log.batches)
    c.create("fresh")
    assert errors(c.ask(request("fresh", "none"))) == {
        ("fresh", 0): E.NONE,
        ("none", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert errors(c.ask(request("t", partitions=(9,)))) == {("t", 9): E.UNKNOWN_TOPIC_OR_PARTITION}
    assert len(c.log.batches) == written, "there was nothing to write"


def test_topics_that_members_read_keep_their_offsets() -> None:
    c = with_offsets()
    c.stable(protocols={"range": READS_T})
    assert errors(c.ask(request("t", "u"))) == {("t", 0): E.GROUP_SUBSCRIBED_TO_TOPIC, ("u", 0): E.NONE}
    assert offsets(c) == {("t", 0): 5, ("t", 1): 5, ("u", 1): 5}
    c.wait(20_000)
    assert not c.group.members
    assert errors(c.ask(request("t"))) == {("t", 0): E.NONE}, "its last member is gone"


@each(
    ("changes", "expected"),
    [
        ({"protocols": {"range": b"?"}}, {("u", 0): E.GROUP_SUBSCRIBED_TO_TOPIC}),
        ({"protocol_type": "connect", "protocols": {"range": READS_T}}, E.NON_EMPTY_GROUP),
    ],
)
def test_members_whose_topics_are_not_known_may_read_any(changes: dict[str, Any], expected: Any) -> None:
    c = with_offsets()
    c.stable(**changes)
    answer = c.ask(request("u"))
    assert ((answer.error_code, answer.topics) if answer.error_code else errors(answer)) == (
        (expected, ()) if isinstance(expected, E) else expected
    )
    assert len(offsets(c)) == 4


def test_before_a_group_has_chosen_a_protocol_any_topic_counts() -> None:
    c = Coordination(delay_ms=1000)
    c.ask(commit_request(5, topic="u"), 9)
    c.enter(protocols={"range": READS_T})
    assert errors(c.ask(request("u"))) == {("u", 0): E.GROUP_SUBSCRIBED_TO_TOPIC}


@each(
    ("group_id", "topics", "damaged", "expected"),
    [
        ("", ("t",), False, E.INVALID_GROUP_ID),
        ("none", ("t",), False, E.GROUP_ID_NOT_FOUND),
        ("none", ("nowhere",), False, E.GROUP_ID_NOT_FOUND),
        ("none", (), False, E.GROUP_ID_NOT_FOUND),
        ("g", ("t",), True, E.NOT_COORDINATOR),
    ],
)
def test_a_group_that_is_not_here_is_an_error_of_the_whole(
    group_id: str, topics: tuple[str, ...], damaged: bool, expected: E
) -> None:
    c = with_offsets()
    if damaged:
        c.groups.shards.loaded.clear()
    answer = c.ask(request(*topics, group_id=group_id))
    assert (answer.error_code, answer.topics) == (expected, ())


def test_a_request_that_names_no_topic_deletes_nothing_in_a_group_that_is_there() -> None:
    c = with_offsets()
    assert errors(c.ask(request())) == {}
    assert len(offsets(c)) == 4


def test_a_group_of_the_consumer_protocol_keeps_the_offsets_of_what_its_members_are_subscribed_to() -> None:
    c = Consumers()
    for topic in ("t", "u"):
        c.ask(commit_request(5, topic=topic), 9)
    by_name = c.consumer("m")
    assert by_name.join().error_code == E.NONE
    assert errors(c.ask(request("t", "u", "nowhere"))) == {
        ("t", 0): E.GROUP_SUBSCRIBED_TO_TOPIC,
        ("u", 0): E.NONE,
        ("nowhere", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert offsets(c) == {("t", 0): 5}
    by_name.beat(subscribed_topic_names=(), subscribed_topic_regex="t|v")
    assert errors(c.ask(request("t"))) == {("t", 0): E.GROUP_SUBSCRIBED_TO_TOPIC}, "an expression matches it"
    by_name.leave()
    assert errors(c.ask(request("t"))) == {("t", 0): E.NONE}, "its last member is gone"


def test_a_deletion_that_cannot_be_written_is_refused_and_the_offset_stays() -> None:
    c = with_offsets()
    number = c.send(request("t"))
    c.fail(E.NOT_ENOUGH_REPLICAS)
    assert c.answers[number].error_code == E.COORDINATOR_NOT_AVAILABLE
    assert len(offsets(c)) == 4


def test_a_deletion_takes_commits_that_are_under_way_and_what_is_pending_in_a_transaction() -> None:
    c = Coordination()
    c.send(commit_request(5), 9)
    assert c.shard.knows("g") is False
    c.commit()
    c.send(commit_request(6), 9)
    number = c.send(request("t"))
    c.commit()
    assert errors(c.answers[number]) == {("t", 0): E.NONE}
    assert offsets(c) == {}, "as the log has it: first the commit, then the deletion"
    c.ask(pending_request(7, topic="u"))
    assert errors(c.ask(request("u"))) == {("u", 0): E.NONE}
    c.end_transaction()
    assert offsets(c) == {}, "the transaction has nothing left that could count"
