"""Questions to a cluster of thousands of partitions."""

import time
from typing import Any

import pytest

from strandline.client.metadata import TopicView
from strandline_spark.sink.exactly_once import journal
from strandline_spark.topic.looking import Looking, choose, is_chosen
from strandline_spark.topic.offsets import Seen, SeenTopic
from strandline_spark.topic.options import Matching, stream_options

COUNT = 10_000


class Elders:
    """A cluster that knows when each epoch ended, and counts who asks."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def epoch_end(self, topic: str, partition: int, epoch: int) -> tuple[int, int]:
        self.asked.append((partition, epoch))
        return epoch, 10 * epoch


def view(leader_epoch: int, topic_id: str = "id") -> dict[str, SeenTopic]:
    return {"t": SeenTopic(topic_id, {number: Seen(leader_epoch, 0, 1000) for number in range(COUNT)})}


@pytest.fixture
def looking() -> Looking:
    cluster: Any = Elders()
    return Looking(cluster, stream_options({"subscribe": "t"}))


def ask_all(looking: Looking, epoch: int) -> int:
    """How many questions the cluster was asked for it."""
    cluster: Any = looking.cluster
    before = len(cluster.asked)
    assert all(looking.ask("t", number, epoch) == (epoch, 10 * epoch) for number in range(COUNT))
    return len(cluster.asked) - before


def test_answers_hold_until_another_leads_or_the_topic_is_another(looking: Looking) -> None:
    looking.view = view(7)
    assert [ask_all(looking, epoch) for epoch in (6, 6, 5)] == [COUNT, 0, COUNT]
    looking.view = view(8)
    assert [ask_all(looking, epoch) for epoch in (6, 6)] == [COUNT, 0]
    looking.view = view(8, "other")
    assert ask_all(looking, 6) == COUNT


def test_the_present_epoch_has_no_end_to_remember(looking: Looking) -> None:
    looking.view = view(7)
    assert [ask_all(looking, 7) for _ in range(2)] == [COUNT, COUNT]


def test_remembering_thousands_of_answers_takes_no_time(looking: Looking) -> None:
    looking.view = view(7)
    began = time.process_time()
    ask_all(looking, 6)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", journal.TOPIC])
def test_a_pattern_chooses_no_internal_topic(name: str) -> None:
    there = {each: TopicView(each, "id", {}) for each in ("t", name)}
    assert list(choose(Matching(".*"), there)[0]) == ["t"]
    assert not is_chosen(Matching(".*"), name, 0)
