"""What is forgotten goes in steps: no step looks at more than a bounded number of offsets."""

from tests.unit.group.coordination import Coordination, commit_request

from strandline.base.ids import LeaderEpoch
from strandline.base.time import Instant
from strandline.group.offsets.offsets import CommittedOffset, batch_of, offset_record
from strandline.group.serving.retention import STEP_OFFSETS
from strandline.wire.batch import read_header

RETENTION_MS, CHECK_MS = 1_000_000, 100_000


def a_coordinator(groups: int, partitions: int, topics: tuple[str, ...] = ("t",)) -> Coordination:
    """It has loaded groups that committed offsets of `partitions` of each topic."""
    c = Coordination(offsets_retention_ms=RETENTION_MS, offsets_retention_check_ms=CHECK_MS)
    for number in range(groups):
        rows = [
            offset_record(f"g{number}", topic, at, CommittedOffset(7, 0, "", Instant(c.now), c.image.topic_ids[topic]))
            for topic in topics
            for at in range(partitions)
        ]
        c.log.written(bytes(batch_of(rows, Instant(c.now))))
    c.log.epoch = LeaderEpoch(1)
    c.take(c.groups.follow_leadership(Instant(c.now)))
    c.wait(100)
    assert len(c.shard.offsets) == groups
    return c


def sizes(c: Coordination) -> list[int]:
    """Of the batches of tombstones that are under way."""
    return [read_header(batch).record_count for batch, _ in c.log.under_way]


def test_a_group_with_more_old_offsets_than_a_step_may_take_loses_all_of_them_and_then_itself() -> None:
    c = a_coordinator(1, 2 * STEP_OFFSETS + 1)
    c.wait(RETENTION_MS)
    written = []
    while c.log.under_way:
        written += sizes(c)
        c.commit()
        c.wait(10)
    assert written == [STEP_OFFSETS, STEP_OFFSETS, 1]
    assert (c.shard.offsets, c.reload().offsets) == ({}, {})


def test_many_groups_lose_the_offsets_of_a_deleted_topic_in_steps_and_requests_are_served_between_them() -> None:
    count = 3 * STEP_OFFSETS // 10
    c = a_coordinator(count, 5, ("t", "u"))
    c.delete("t")
    assert 0 < sum(sizes(c)) <= STEP_OFFSETS
    assert c.groups.deadline() == c.now + 1
    assert c.ask(commit_request(9, topic="u")).topics[0].partitions[0].error_code == 0
    for _ in range(10):
        c.wait(1)
    c.commit()
    left = {topic for offsets in c.shard.offsets.values() for topic, _ in offsets}
    assert left == {"u"}
    assert c.reload().offsets == c.shard.offsets
    assert c.groups.deadline() > c.now + 1, "and then it rests"


def test_a_sweep_that_begins_while_another_one_is_under_way_still_comes_to_all_groups() -> None:
    """Topics are deleted faster than the groups are looked through."""
    c = a_coordinator(3 * STEP_OFFSETS // 10, 5, ("t", "u"))
    c.delete("t")
    c.delete("u")
    for _ in range(10):
        c.wait(1)
    c.commit()
    assert c.shard.offsets == {}


def test_what_a_shard_was_to_lose_is_not_written_by_who_leads_it_no_more() -> None:
    c = a_coordinator(3 * STEP_OFFSETS // 10, 5)
    c.delete("t")
    c.commit()
    c.log.epoch = None
    c.take(c.groups.follow_leadership(Instant(c.now)))
    c.wait(100)
    assert c.log.under_way == []
