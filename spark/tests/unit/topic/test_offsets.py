"""How far a query has read, and what of a topic is lost to it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.log.epochs import Epochs, EpochStart
from strandline_spark.errors import StrandlineError
from strandline_spark.topic.offsets import (
    Lost,
    Offsets,
    Position,
    Seen,
    SeenTopic,
    TopicPositions,
    data_loss,
    epoch_before,
    from_json,
    losses,
    to_json,
)


class Log:
    """One partition as its leader answers for it: what epochs began where, with the broker's own code."""

    def __init__(self, *epochs: tuple[int, int], start: int = 0, end: int, leader_epoch: int = 0) -> None:
        self.epochs = Epochs([EpochStart(*each) for each in epochs])
        self.start, self.end = start, end
        self.leader_epoch = leader_epoch
        self.asked = 0

    @property
    def seen(self) -> Seen:
        return Seen(max(self.epochs.latest, self.leader_epoch), self.start, self.end)

    def ask(self, topic: str, partition: int, epoch: int) -> tuple[int, int]:
        self.asked += 1
        return self.epochs.end_offset_for(epoch, self.end)

    def losses(self, position: Position, *, was: str = "id1", now: str = "id1") -> list[Lost]:
        known = {"t": TopicPositions(was, {0: position})}
        return losses(known, {"t": SeenTopic(now, {0: self.seen})}, self.ask)

    def epoch_before(self, offset: int) -> int:
        return epoch_before("t", 0, offset, self.seen, self.ask)


def kinds(found: list[Lost]) -> list[tuple[str, int | None]]:
    return [(each.kind, None if each.resume is None else each.resume.offset) for each in found]


def test_equal_offsets_are_equal_text() -> None:
    one = Offsets({"b": TopicPositions("x", {10: Position(1), 2: Position(5, 3)}), "a": TopicPositions("y", {})})
    two = Offsets({"a": TopicPositions("y", {}), "b": TopicPositions("x", {2: Position(5, 3), 10: Position(1)})})
    text = json.dumps(to_json(one))
    assert text == json.dumps(to_json(two)) == json.dumps(to_json(one), sort_keys=True)
    assert from_json(json.loads(text)) == one


def test_where_a_first_batch_began_survives_the_way_through_a_checkpoint() -> None:
    begins = {"t": TopicPositions("x", {0: Position(9, 1)})}
    for offsets in (Offsets(begins, is_fresh=True), Offsets({"t": TopicPositions("x", {0: Position(12, 1)})}, begins)):
        assert from_json(json.loads(json.dumps(to_json(offsets)))) == offsets


@pytest.mark.parametrize("tree", [{}, {"events": {"0": 23}}, {"version": 2, "topics": {}}, {"version": 1}])
def test_offsets_of_another_source_are_refused(tree: dict[str, object]) -> None:
    with pytest.raises(StrandlineError) as refused:
        from_json(tree)
    assert "checkpoint" in refused.value.problem


def test_a_log_that_goes_on_has_lost_nothing_and_nobody_is_asked() -> None:
    log = Log((0, 0), (3, 50), end=120)
    assert log.losses(Position(100, 3)) == []
    assert log.asked == 0


def test_a_gap_of_compaction_is_not_loss() -> None:
    """However few records are left: the log's start and end say what is there, not the number of records."""
    assert Log((0, 0), (4, 900), start=0, end=1000).losses(Position(17, 0)) == []


def test_retention_that_overtakes_the_reader_is_reported_with_its_range() -> None:
    found = Log((0, 0), start=40, end=120).losses(Position(25, 0))
    assert kinds(found) == [("expired", 40)]
    assert "from 25 on (15 offsets)" in found[0].what


def test_retention_up_to_the_position_is_not_loss() -> None:
    log = Log((0, 0), (2, 100), start=0, end=120)
    log.epochs.cut_start(110)
    log.start = 110
    assert log.losses(Position(110, 0)) == []
    assert log.losses(Position(110, 2)) == []


def test_a_topic_created_anew_is_reported_even_if_it_is_longer_than_the_old_one() -> None:
    found = Log((0, 0), end=1000).losses(Position(10, 0), now="id2")
    assert kinds(found) == [("recreated", 0)]
    assert "its id was id1 and is id2" in found[0].what


def test_clusters_without_topic_ids_are_read_by_name() -> None:
    assert Log((0, 0), end=1000).losses(Position(10, 0), was="") == []


def test_a_topic_that_is_gone_is_reported() -> None:
    found = losses({"t": TopicPositions("x", {0: Position(1)})}, {}, Log(end=0).ask)
    assert kinds(found) == [("deleted", None)]
    assert "topic t does not exist any more" in found[0].what


def test_a_truncation_is_reported_although_the_log_has_grown_beyond_the_position_again() -> None:
    """Epoch 5 began at 80 in a log without the records from 80 to 100: they were read, and are others now."""
    found = Log((0, 0), (5, 80), end=300).losses(Position(100, 0))
    assert kinds(found) == [("truncated", 80)]


def test_records_of_an_epoch_that_the_log_does_not_know_were_lost_even_if_an_older_epoch_is_longer() -> None:
    """A stale leader of epoch 1 had records up to 90, which were never committed; epoch 2 had begun at 45."""
    assert kinds(Log((1, 0), (4, 90), end=300).losses(Position(50, 2))) == [("truncated", 50)]


def test_an_unclean_election_that_cut_nothing_which_was_read_is_not_loss() -> None:
    log = Log((0, 0), (5, 100), end=300)
    assert log.losses(Position(100, 0)) == []
    assert log.asked == 1


def test_a_new_leader_that_does_not_know_its_high_watermark_yet_has_lost_nothing() -> None:
    log = Log((0, 0), (1, 100), end=100)
    known = {"t": TopicPositions("id1", {0: Position(100, 0)})}
    assert losses(known, {"t": SeenTopic("id1", {0: Seen(1, 0, 95)})}, log.ask) == []


def test_a_log_that_was_wiped_is_a_truncation() -> None:
    assert kinds(Log(end=0, leader_epoch=7).losses(Position(10, 3))) == [("truncated", 0)]
    assert kinds(Log((0, 0), end=5).losses(Position(10))) == [("truncated", 5)]


def test_an_answer_from_before_the_present_leader_says_nothing() -> None:
    assert Log((0, 0), end=50).losses(Position(100, 2)) == []


def test_many_losses_are_reported_in_one_sentence_each_and_once() -> None:
    known = {"t": TopicPositions("id1", dict.fromkeys(range(20), Position(5)))}
    error = data_loss(losses(known, {}, Log(end=0).ask))
    assert error.problem == "topic t does not exist any more"
    assert "failOnDataLoss" in error.advice


EPOCHS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 60)), max_size=8)


@given(EPOCHS, st.integers(0, 40), st.integers(0, 60), st.integers(0, 60))
def test_the_epoch_before_an_offset_is_the_one_that_the_log_has_there(
    epochs: list[tuple[int, int]], latest: int, start: int, size: int
) -> None:
    log = Log(start=0, end=0)
    for epoch, offset in sorted(epochs):
        if not log.epochs.entries or offset > log.epochs.entries[-1].start_offset:
            log.epochs.assign(epoch, offset)
    end = max([start + size, *(offset for _, offset in log.epochs.entries)])
    log.end = end
    log.epochs.cut_start(start)
    log.start = start
    if log.epochs.entries and log.epochs.entries[0].start_offset > start:
        log.epochs = Epochs([EpochStart(0, start), *[e for e in log.epochs.entries if e.epoch > 0]])
    for offset in range(start + 1, end + 1):
        expected = log.epochs.epoch_at(offset - 1)
        assert log.epoch_before(offset) == (expected if log.epochs.entries else 0)
    assert log.epoch_before(start) == -1


@given(EPOCHS, st.integers(0, 200))
def test_what_was_read_of_a_log_that_only_grows_is_never_taken_for_lost(
    epochs: list[tuple[int, int]], more: int
) -> None:
    log = Log((0, 0), end=0)
    known: list[Position] = []
    for epoch, grown in sorted(epochs):
        log.end += grown
        log.epochs.assign(epoch, log.end)
        known.append(Position(log.end, log.epoch_before(log.end)))
    log.end += more
    assert [lost for position in known for lost in log.losses(position)] == []
