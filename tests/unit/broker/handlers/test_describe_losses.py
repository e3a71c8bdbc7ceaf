"""DescribeLosses, as a broker answers it."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.replica.conftest import AT, CALLER
from tests.unit.replica.storage.test_directories import HOME, Jbod

from strandline.base.effects import Received, Reply, ReplyTo
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition, Uuid
from strandline.broker.handlers import describe_losses
from strandline.broker.metrics.gauges import of_replicas
from strandline.metadata import records as r
from strandline.metadata.acknowledgements import id_of, key_of, resource_of, value_of
from strandline.metadata.losses import AT_MOST, EXACTLY, NO_END
from strandline.metadata.records import LossEvent
from strandline.replica.hosting.ledger import Lost
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.messages.own.describe_losses import DescribeLossesRequest, Loss

ELECTION = LossEvent(start=4, certainty=AT_MOST, replica=2, old_epoch=0, new_epoch=1, time_ms=50, cause="elected")
CUT = LossEvent(start=4, end=6, certainty=EXACTLY, replica=1, old_epoch=0, new_epoch=1, time_ms=60, cause="cut")
GONE = TopicIdPartition(Uuid(b"a topic deleted."), 7)


class FakeBroker:
    def __init__(self, jbod: Jbod) -> None:
        self.replicas = jbod.nodes[NodeId(1)]


class FakeNode:
    def __init__(self, jbod: Jbod) -> None:
        self.me = NodeId(1)
        self.broker = FakeBroker(jbod)
        self.image = jbod.images[NodeId(1)]


@pytest.fixture
def jbod() -> Jbod:
    """An election and a cut of t-0, and a cut of a topic that has been deleted since."""
    made = Jbod()
    made.create_in(*HOME)
    made.change(leader=NOBODY, losses=(ELECTION,))
    ledger = made.nodes[NodeId(1)].host.ledger
    ledger.write("/d0", [Lost(AT, "t", CUT)])
    ledger.write("/d1", [Lost(GONE, "gone", replace(CUT, time_ms=40, start=0, cause="of old"))])
    return made


def ask(jbod: Jbod, **fields: Any) -> Any:
    """The answer, as the asker would read it from the wire."""
    message = DescribeLossesRequest(**fields)
    to = ReplyTo(1, 1, 1, message.api_key, 0)
    (reply,) = describe_losses.answer(FakeNode(jbod), Received(to, CALLER, message), jbod.now)  # type: ignore[arg-type]
    assert isinstance(reply, Reply)
    return decode_all(type(reply.message), 0, memoryview(bytearray(encode_bytes(reply.message, 0))))


def test_replicas_and_elections_are_reported_by_time_and_each_says_where_it_is_known(jbod: Jbod) -> None:
    answer = ask(jbod)
    assert [(loss.where, loss.node_id, loss.topic, loss.partition, loss.cause) for loss in answer.losses] == [
        ("replica", 1, "gone", 7, "of old"),
        ("metadata", -1, "t", 0, "elected"),
        ("replica", 1, "t", 0, "cut"),
    ]
    assert answer.losses[1] == Loss(
        topic="t",
        topic_id=AT.topic_id,
        partition=0,
        where="metadata",
        node_id=-1,
        start=4,
        end=NO_END,
        certainty=AT_MOST,
        replica=2,
        old_epoch=0,
        new_epoch=1,
        time_ms=50,
        cause="elected",
    )
    assert (answer.node_id, answer.error_code, answer.left_out, answer.lost_records) == (1, 0, 0, 8)


def test_an_entry_that_was_acknowledged_says_by_whom_and_when(jbod: Jbod) -> None:
    """As the metadata has it that this broker has read."""
    election, cut = ask(jbod).losses[1:]
    kind, name = resource_of(AT.topic_id, AT.partition)
    key = key_of(id_of(cut))
    jbod.images[NodeId(1)].apply(
        r.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value_of("me", 7))
    )
    assert tuple(ask(jbod).losses[1:]) == (election, replace(cut, acknowledged_by="me", acknowledged_ms=7))


@pytest.mark.parametrize("value", ["", "x", "{}", '{"by":1,"timeMs":2}'])
def test_an_invalid_acknowledgement_does_not_count(jbod: Jbod, value: str) -> None:
    before = ask(jbod).losses
    kind, name = resource_of(AT.topic_id, AT.partition)
    for loss in before:
        record = r.ConfigRecord(resource_type=kind, resource_name=name, name=key_of(id_of(loss)), value=value)
        jbod.images[NodeId(1)].apply(record)
    assert ask(jbod).losses == before


def test_a_directory_whose_ledger_could_not_be_read_is_named() -> None:
    made = Jbod()
    made.create_in(*HOME)
    made.fail(1, "/d1")
    made.produce(1)
    made.run(6_000)
    assert not ask(made).unread, "what it has was read before, if nothing was there either"
    made.kill(NodeId(1))
    made.dead = ("/d1",)
    made.start(NodeId(1))
    assert ask(made).unread == ("/d1",)


@pytest.mark.parametrize(
    ("topics", "causes"),
    [(("t",), ["elected", "cut"]), (("gone", "never"), ["of old"]), ((), []), (None, ["of old", "elected", "cut"])],
)
def test_only_the_topics_that_are_asked_for_are_reported(
    jbod: Jbod, topics: tuple[str, ...] | None, causes: list[str]
) -> None:
    assert [loss.cause for loss in ask(jbod, topics=topics).losses] == causes


@pytest.mark.parametrize(
    ("limit", "causes", "left_out"), [(3, 3, 0), (2, ["elected", "cut"], 1), (1, ["cut"], 2), (0, ["cut"], 2)]
)
def test_the_latest_are_reported_up_to_the_limit_and_how_many_are_not(
    jbod: Jbod, limit: int, causes: Any, left_out: int
) -> None:
    answer = ask(jbod, limit=limit)
    reported = [loss.cause for loss in answer.losses]
    assert (reported if isinstance(causes, list) else len(reported)) == causes
    assert answer.left_out == left_out


def test_a_deleted_topic_takes_its_elections_along_and_leaves_what_replicas_lost(jbod: Jbod) -> None:
    jbod.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    assert [(loss.topic, loss.cause) for loss in ask(jbod).losses] == [("gone", "of old"), ("t", "cut")]


def test_lost_records_and_events_are_counted_in_gauges(jbod: Jbod) -> None:
    found = {family.metric.name: family.samples for family in of_replicas(jbod.nodes[NodeId(1)], [])}
    assert found["strandline_replica_LossLedger_LostRecordsCount"] == [((), 8)]
    assert found["strandline_replica_LossLedger_LossEventsCount"] == [((), 2)]
