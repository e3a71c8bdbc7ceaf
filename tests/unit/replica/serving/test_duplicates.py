"""What a producer is told of a batch that it sends again: the first offset, when it is committed, or a refusal."""

from typing import Any

import pytest
from tests.unit.replica.conftest import AT, World, a_batch

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import NodeId
from strandline.log.log import Log
from strandline.metadata.registrations import RECOVERING
from strandline.replica.hosting.leader import Leader
from strandline.replica.serving import awaited
from strandline.wire.batch import read_header

PRODUCER = 7


@pytest.fixture
def world() -> World:
    """t-0 on brokers 1, 2 and 3 with min ISR 2, led by 1; 3 records of nobody, so that offsets are not sequences."""
    made = World()
    made.create(min_insync_replicas="2")
    made.run(1_000)
    made.produce(1, 3)
    made.run(1_000)
    assert made.ends() == [3, 3, 3]
    return made


def send(world: World, node: int, sequence: int, *, acks: int = -1, **options: Any) -> Any:
    batch = a_batch(2, producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence)
    return world.produce(node, acks=acks, batch=batch, **options)


def log_of(world: World, node: int) -> Log:
    hosted = world.nodes[NodeId(node)].host.partitions.find(AT)
    assert hosted is not None
    return hosted.log


def sequences(world: World, node: int) -> list[tuple[int, int]]:
    """Of the producer's batches, as they lie in one replica: offset and first sequence."""
    headers = log_of(world, node).headers(0)
    return [(header.base_offset, header.base_sequence) for header in headers if header.producer_id == PRODUCER]


def result_of(answer: Any) -> tuple[E, int] | None:
    row = answer()
    return None if row is None else (E(row.error_code), row.base_offset)


def cut_off(world: World, *nodes: int) -> None:
    world.cut |= {NodeId(node) for node in nodes}


# --- when it is answered


def test_a_duplicate_is_answered_when_the_batch_is_committed_and_no_sooner(world: World) -> None:
    cut_off(world, 2, 3)
    first = send(world, 1, 0)
    again = send(world, 1, 0)
    assert (result_of(first), result_of(again)) == (None, None)
    assert world.row(1)[2:4] == (3, 5)
    world.cut.clear()
    world.run(3_000)
    assert result_of(first) == result_of(again) == (E.NONE, 3)
    assert world.ends() == [5, 5, 5]
    assert result_of(send(world, 1, 0)) == (E.NONE, 3), "at once, since it is committed"


def test_a_duplicate_of_what_timed_out_waits_again(world: World) -> None:
    cut_off(world, 2, 3)
    first = send(world, 1, 0, timeout_ms=100)
    world.run(200)
    assert result_of(first) == (E.REQUEST_TIMED_OUT, -1)
    again = send(world, 1, 0)
    assert result_of(again) is None
    world.cut.clear()
    world.run(3_000)
    assert result_of(again) == (E.NONE, 3)
    assert world.ends() == [5, 5, 5]


def test_a_duplicate_after_too_few_replicas_after_append_is_refused_then_waits_then_has_the_first_offset(
    world: World,
) -> None:
    cut_off(world, 2, 3)
    first = send(world, 1, 0)
    world.change(isr=(1,))
    assert result_of(first) == (E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1)
    assert result_of(send(world, 1, 0)) == (E.NOT_ENOUGH_REPLICAS, -1)
    world.controller_answers = False
    world.cut.clear()
    world.run(200)
    assert result_of(send(world, 1, 0)) == (E.NOT_ENOUGH_REPLICAS, -1), "2 and 3 have it, and the ISR is not committed"
    world.controller_answers = True
    world.answer_controller()
    world.run(3_000)
    assert result_of(send(world, 1, 0)) == (E.NONE, 3)
    assert sequences(world, 1) == [(3, 0)]
    assert world.ends() == [5, 5, 5]


def test_acks_1_is_answered_with_the_first_offset_before_it_is_committed(world: World) -> None:
    cut_off(world, 2, 3)
    assert result_of(send(world, 1, 0, acks=1)) == (E.NONE, 3)
    assert result_of(send(world, 1, 0, acks=1)) == (E.NONE, 3)
    assert result_of(send(world, 1, 0)) is None


# --- by whom


def test_a_new_leader_that_has_it_answers_when_its_own_high_watermark_has_passed_it(world: World) -> None:
    world.produce(1, 1)
    send(world, 1, 0)
    world.kill(NodeId(1))
    cut_off(world, 3)
    world.change(leader=2, isr=(2, 3))
    leader = world.nodes[NodeId(2)].host.partitions.find(AT)
    assert leader is not None
    assert type(leader.role) is Leader
    again = send(world, 2, 0)
    assert result_of(again) is None
    assert world.row(2)[2:4] == (4, 6), "its high watermark is what the old leader told last"
    world.cut.clear()
    world.run(3_000)
    assert result_of(again) == (E.NONE, 4)


def test_a_new_leader_that_lacks_it_writes_it(world: World) -> None:
    cut_off(world, 2, 3)
    first = send(world, 1, 0)
    world.cut.clear()
    world.kill(NodeId(1))
    world.change(leader=2, isr=(2, 3))
    assert result_of(first) is None
    world.produce(2, 4)
    again = send(world, 2, 0)
    world.run(3_000)
    assert result_of(again) == (E.NONE, 7)
    assert sequences(world, 2) == sequences(world, 3) == [(7, 0)]


def test_what_a_follower_cut_it_does_not_know_when_it_leads_again(world: World) -> None:
    cut_off(world, 2, 3)
    send(world, 1, 0)
    world.change(leader=2, isr=(1, 2, 3))
    world.cut.clear()
    world.run(1_000)
    assert sequences(world, 1) == []
    world.change(leader=1)
    world.run(1_000)
    world.produce(1, 1)
    again = send(world, 1, 0)
    world.run(3_000)
    assert result_of(again) == (E.NONE, 4)
    assert sequences(world, 1) == sequences(world, 2) == [(4, 0)]


@pytest.mark.parametrize("has_it", [True, False])
def test_after_an_unclean_election_the_log_that_leads_decides(world: World, has_it: bool) -> None:
    if not has_it:
        cut_off(world, 3)
        world.change(isr=(1, 2))
    first = send(world, 1, 0, timeout_ms=200_000)
    world.run(60_000)
    assert result_of(first) == (E.NONE, 3)
    world.kill(NodeId(1))
    world.kill(NodeId(2))
    world.cut.clear()
    world.change(leader=3, isr=(3,), leader_recovery_state=RECOVERING)
    world.start(NodeId(1))
    world.start(NodeId(2))
    world.run(5_000)
    world.produce(3, 1)
    world.run(3_000)
    again = send(world, 3, 0)
    world.run(3_000)
    at = 3 if has_it else 4
    assert result_of(again) == (E.NONE, at)
    assert sequences(world, 1) == sequences(world, 2) == sequences(world, 3) == [(at, 0)]


def test_after_a_restart_a_duplicate_is_known_and_committed_before_it_is_answered(world: World) -> None:
    send(world, 1, 0)
    world.run(3_000)
    for node in (1, 2, 3):
        world.kill(NodeId(node))
    for node in (1, 2, 3):
        world.start(NodeId(node), clean=False)
    again = send(world, 1, 0)
    world.run(3_000)
    assert result_of(again) == (E.NONE, 3)
    assert world.ends() == [5, 5, 5]


def test_a_batch_older_than_the_last_five_is_not_a_duplicate(world: World) -> None:
    for sequence in range(0, 12, 2):
        send(world, 1, sequence)
    world.run(3_000)
    assert result_of(send(world, 1, 0)) == (E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert result_of(send(world, 1, 2)) == (E.NONE, 5)


# --- what was refused comes first


def refuse_first(world: World, how: E) -> None:
    """The producer's first batch meets a broker that cannot take it now, and that can when the second one comes."""
    if how is E.NOT_ENOUGH_REPLICAS:
        world.change(isr=(1,))
        assert result_of(send(world, 1, 0)) == (how, -1)
        world.change(isr=(1, 2, 3))
    else:
        world.change(leader=2, isr=(1, 2, 3))
        assert result_of(send(world, 1, 0)) == (how, -1)
        world.change(leader=1)
    world.run(1_000)


@pytest.mark.parametrize("how", [E.NOT_ENOUGH_REPLICAS, E.NOT_LEADER_OR_FOLLOWER])
def test_a_batch_behind_one_that_was_refused_is_refused_until_that_comes(world: World, how: E) -> None:
    refuse_first(world, how)
    assert result_of(send(world, 1, 2)) == (E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert sequences(world, 1) == []
    first, second = send(world, 1, 0), send(world, 1, 2)
    world.run(3_000)
    assert result_of(first) == (E.NONE, 3)
    assert result_of(second) == (E.NONE, 5)


def test_a_partition_that_is_not_known_yet_awaits_what_it_refused() -> None:
    world = World()
    assert result_of(send(world, 1, 0))[0] is E.UNKNOWN_TOPIC_OR_PARTITION  # type: ignore[index]
    world.create()
    world.run(1_000)
    assert result_of(send(world, 1, 2)) == (E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    first = send(world, 1, 0)
    world.run(1_000)
    assert result_of(first) == (E.NONE, 0)


def test_the_first_that_was_refused_is_awaited_and_not_the_last(world: World) -> None:
    world.change(isr=(1,))
    for sequence in (0, 2):
        assert result_of(send(world, 1, sequence)) == (E.NOT_ENOUGH_REPLICAS, -1)
    world.change(isr=(1, 2, 3))
    world.run(1_000)
    assert result_of(send(world, 1, 2)) == (E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


def test_other_producers_and_later_epochs_may_begin(world: World) -> None:
    refuse_first(world, E.NOT_ENOUGH_REPLICAS)
    for producer, epoch in ((PRODUCER + 1, 0), (PRODUCER, 1)):
        batch = a_batch(1, producer_id=producer, producer_epoch=epoch, base_sequence=4)
        answer = world.produce(1, batch=batch)
        world.run(1_000)
        assert result_of(answer)[0] is E.NONE  # type: ignore[index]


def test_a_producer_that_the_log_knows_is_judged_by_the_log(world: World) -> None:
    """It wrote to another leader meanwhile."""
    refuse_first(world, E.NOT_LEADER_OR_FOLLOWER)
    producing = world.nodes[NodeId(1)].producing
    world.change(leader=2)
    world.run(1_000)
    for sequence in (0, 2):
        send(world, 2, sequence)
    world.run(3_000)
    world.change(leader=1)
    world.run(1_000)
    assert producing.awaited.rows
    answer = send(world, 1, 4)
    world.run(1_000)
    assert result_of(answer) == (E.NONE, 7)
    assert not producing.awaited.rows


def test_a_refusal_is_forgotten_when_nothing_can_be_under_way_any_more(world: World) -> None:
    refuse_first(world, E.NOT_ENOUGH_REPLICAS)
    world.run(awaited.SPAN_MS)
    answer = send(world, 1, 2)
    world.run(1_000)
    assert result_of(answer) == (E.NONE, 3)


def test_after_one_that_is_forgotten_another_is_awaited(world: World) -> None:
    refuse_first(world, E.NOT_ENOUGH_REPLICAS)
    world.run(awaited.SPAN_MS)
    world.change(isr=(1,))
    assert result_of(send(world, 1, 4)) == (E.NOT_ENOUGH_REPLICAS, -1)
    world.change(isr=(1, 2, 3))
    world.run(1_000)
    assert result_of(send(world, 1, 6)) == (E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


def test_only_so_many_refusals_are_remembered_and_the_oldest_goes() -> None:
    rows = awaited.Awaited()
    world = World()
    world.create()
    log, now = log_of(world, 1), world.now
    for producer in range(awaited.ROWS_MAX + 1):
        rows.refused(("t", 0), a_batch(1, producer_id=producer, producer_epoch=0, base_sequence=0), now)
    assert len(rows.rows) == awaited.ROWS_MAX
    for producer, is_skipped in ((0, False), (1, True), (awaited.ROWS_MAX, True)):
        batch = a_batch(1, producer_id=producer, producer_epoch=0, base_sequence=1)
        assert read_header(batch).producer_id == producer
        assert rows.is_skipped(("t", 0), log, batch, now) is is_skipped


def test_a_name_that_no_topic_can_have_is_not_remembered() -> None:
    rows = awaited.Awaited()
    for length in (awaited.NAME_MAX, awaited.NAME_MAX + 1):
        batch = a_batch(1, producer_id=1, producer_epoch=0, base_sequence=0)
        rows.refused(("t" * length, 0), batch, World().now)
    assert [len(where[0]) for where, _, _ in rows.rows] == [awaited.NAME_MAX]


@pytest.mark.parametrize("records", [None, b"", b"junk", a_batch(1)], ids=["none", "empty", "junk", "no producer"])
def test_what_is_no_batch_of_a_producer_is_not_remembered(records: bytes | None) -> None:
    rows = awaited.Awaited()
    rows.refused(("t", 0), records, World().now)
    assert not rows.rows


@pytest.mark.parametrize(
    ("sequence", "other", "is_behind"),
    [(1, 0, True), (0, 0, False), (0, 1, False), (0, (1 << 31) - 1, True), ((1 << 31) - 1, 0, False)],
)
def test_sequences_begin_again_behind_the_largest(sequence: int, other: int, is_behind: bool) -> None:
    assert awaited.is_behind(sequence, other) is is_behind
