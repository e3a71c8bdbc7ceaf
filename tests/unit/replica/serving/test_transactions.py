"""Transactions at a partition's leader: what is asked of the coordinator before the first batch (KIP-890), markers, and
what read_committed consumers get (KIP-98)."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.rows import each
from tests.unit.replica.conftest import AT, CALLER, START, World

from strandline.base.effects import Answered, Effect, Failed, Failure, Reply, ToBroker
from strandline.base.errors import ErrorCode
from strandline.base.ids import TRANSACTION_TOPIC, NodeId, TopicPartition, Uuid
from strandline.metadata import records as r
from strandline.metadata.configs.config_key import ConfigValue
from strandline.replica.serving.transactions.describing import describe_producers
from strandline.wire.batch import build
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.records.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from strandline.wire.messages.transactions.describe_producers import DescribeProducersRequest, TopicRequest
from strandline.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

NONE = ErrorCode.NONE
STATE_ID = Uuid(b"id of its states")


class TxnWorld(World):
    """Broker 3 coordinates every transaction; it answers when a test says so."""

    def __init__(self, static: dict[str, ConfigValue] | None = None) -> None:
        self.questions: list[ToBroker] = []
        super().__init__(3, static=static)
        self.commit(
            r.TopicRecord(name=TRANSACTION_TOPIC, topic_id=STATE_ID),
            r.PartitionRecord(partition_id=0, topic_id=STATE_ID, replicas=(4,), isr=(4,), leader=3),
        )
        self.create()
        self.run(1_000)

    def perform(self, node: NodeId, effects: list[Effect]) -> None:
        self.questions += [effect for effect in effects if isinstance(effect, ToBroker)]
        super().perform(node, effects)

    def answer(self, error: int = NONE) -> None:
        asked = self.questions.pop(0)
        assert asked.node == 3
        row = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=error)
        topics = (AddPartitionsToTxnTopicResult(name="t", results_by_partition=(row,)),)
        results = tuple(
            AddPartitionsToTxnResult(transactional_id=one.transactional_id, topic_results=topics)
            for one in asked.message.transactions
        )
        response = AddPartitionsToTxnResponse(results_by_transaction=results)
        self.perform(NodeId(1), self.nodes[NodeId(1)].step(Answered(asked.token, response), self.now))

    def write(
        self, sequence: int = 0, *, producer: tuple[int, int] = (7, 0), version: int = 12, acks: int = -1, **more: Any
    ) -> Callable[[], Any]:
        batch = transactional(sequence, producer)
        data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=batch),))
        fields = {"transactional_id": "id", "timeout_ms": 30_000, **more}
        request = ProduceRequest(acks=acks, topic_data=(data,), **fields)
        to = self.to(version)
        self.perform(NodeId(1), self.nodes[NodeId(1)].produce(to, CALLER, request, self.now))

        def answer() -> Any:
            message = self.answers.get(to.correlation_id)
            return None if message is None else message.responses[0].partition_responses[0]

        return answer

    def mark(
        self, *, commits: bool = True, epoch: int = 1, coordinator: int = 0, node: int = 1, version: int = 2
    ) -> Callable[[], Any]:
        marker = WritableTxnMarker(
            producer_id=7,
            producer_epoch=epoch,
            transaction_result=commits,
            topics=(WritableTxnMarkerTopic(name="t", partition_indexes=(0,)),),
            coordinator_epoch=coordinator,
            transaction_version=version,
        )
        to = self.to(2)
        request = WriteTxnMarkersRequest(markers=(marker,))
        self.perform(NodeId(node), self.nodes[NodeId(node)].markers.write(to, request, self.now))

        def answer() -> Any:
            message = self.answers.get(to.correlation_id)
            return None if message is None else ErrorCode(message.markers[0].topics[0].partitions[0].error_code)

        return answer

    def read(
        self, node: int = 1, offset: int = 0, *, committed: bool = True, max_wait_ms: int = 0
    ) -> Callable[[], Any]:
        asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            session_epoch=-1,
            isolation_level=int(committed),
            topics=(FetchTopic(topic="t", partitions=(asked,)),),
        )
        to = self.to(12)
        self.perform(NodeId(node), self.nodes[NodeId(node)].fetch(to, CALLER, request, self.now))

        def answer() -> Any:
            message = self.answers.get(to.correlation_id)
            return None if message is None else message.responses[0].partitions[0]

        return answer

    def latest(self, isolation: int) -> int:
        topic = ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(timestamp=-1),))
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=(topic,))
        to = self.to(7)
        self.perform(NodeId(1), self.nodes[NodeId(1)].list_offsets(to, CALLER, request, self.now))
        return int(self.answers[to.correlation_id].topics[0].partitions[0].offset)

    @property
    def log(self) -> Any:
        hosted = self.nodes[NodeId(1)].host.partitions.find(AT)
        assert hosted is not None
        return hosted.log


def transactional(sequence: int, producer: tuple[int, int]) -> memoryview:
    return memoryview(
        bytearray(
            build(
                [(START, None, b"value", ())],
                producer_id=producer[0],
                producer_epoch=producer[1],
                base_sequence=sequence,
                transactional=True,
            )
        )
    )


@pytest.fixture
def world() -> TxnWorld:
    return TxnWorld()


def test_the_first_batch_of_a_transaction_waits_until_its_coordinator_has_answered(world: TxnWorld) -> None:
    first = world.write()
    assert (first(), world.log.log_end_offset) == (None, 0)
    world.answer()
    world.run(1_000)
    assert (first().error_code, first().base_offset) == (NONE, 0)
    second = world.write(1)
    assert world.questions == [], "the transaction is open here"
    world.run(1_000)
    assert (second().error_code, second().base_offset) == (NONE, 1)


@each(("version", "verify_only"), [(11, True), (12, False)])
def test_an_older_clients_partition_is_verified_and_a_newer_ones_is_added(version: int, verify_only: bool) -> None:
    world = TxnWorld()
    world.write(version=version)
    (question,) = world.questions
    (transaction,) = question.message.transactions
    assert (transaction.verify_only, transaction.transactional_id) == (verify_only, "id")
    assert (transaction.producer_id, transaction.producer_epoch) == (7, 0)


def test_batches_that_come_meanwhile_are_appended_in_their_order(world: TxnWorld) -> None:
    answers = [world.write(sequence) for sequence in range(3)]
    assert len(world.questions) == 1
    world.answer()
    world.run(1_000)
    assert [(answer().error_code, answer().base_offset) for answer in answers] == [(NONE, 0), (NONE, 1), (NONE, 2)]


@each(
    ("said", "version", "expected"),
    [
        (ErrorCode.INVALID_TXN_STATE, 12, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 12, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.PRODUCER_FENCED, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_what_a_coordinator_refuses_is_not_appended(said: ErrorCode, version: int, expected: ErrorCode) -> None:
    world = TxnWorld()
    answer = world.write(version=version)
    world.answer(said)
    assert (ErrorCode(answer().error_code), world.log.log_end_offset) == (expected, 0)


@each("error", [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_coordinator_that_cannot_say_yet_is_asked_again(error: ErrorCode) -> None:
    world = TxnWorld()
    answer = world.write()
    world.answer(error)
    assert world.questions == [], "not at once"
    world.run(20)
    world.answer()
    world.run(1_000)
    assert answer().error_code == NONE


def test_a_coordinator_that_is_not_reached_is_asked_again(world: TxnWorld) -> None:
    answer = world.write()
    asked = world.questions.pop()
    world.perform(NodeId(1), world.nodes[NodeId(1)].step(Failed(asked.token, Failure.CLOSED), world.now))
    world.run(20)
    world.answer()
    world.run(1_000)
    assert answer().error_code == NONE


def test_a_marker_that_comes_meanwhile_makes_the_answer_stale(world: TxnWorld) -> None:
    """It may have ended the very transaction that was verified: nobody would end what is appended now."""
    answer = world.write(version=11)
    world.mark(commits=False, epoch=0, version=0)
    world.answer()
    assert (answer(), world.log.log_end_offset) == (None, 1)
    world.run(20)
    world.answer(ErrorCode.TRANSACTION_ABORTABLE)
    assert answer().error_code == ErrorCode.TRANSACTION_ABORTABLE
    assert not world.log.transactions.open


def test_a_batch_whose_time_is_up_is_not_appended_later(world: TxnWorld) -> None:
    answer = world.write(timeout_ms=100)
    world.run(200)
    assert answer().error_code == ErrorCode.REQUEST_TIMED_OUT
    world.answer()
    assert world.log.log_end_offset == 0


def test_who_waits_for_a_coordinator_is_told_at_once_when_the_leadership_ends(world: TxnWorld) -> None:
    first, second = world.write(), world.write(1)
    world.change(leader=2)
    assert [answer().error_code for answer in (first, second)] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    world.nodes[NodeId(1)].check()


def test_a_leader_that_leads_no_longer_appends_nothing_whatever_the_coordinator_says(world: TxnWorld) -> None:
    answer = world.write()
    world.change(leader=2)
    world.answer()
    assert answer().error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.log.log_end_offset == 0


@each("acks", [1, 0])
def test_acks_1_is_answered_when_it_is_appended_and_acks_0_never(acks: int) -> None:
    world = TxnWorld()
    world.cut = {NodeId(1)}
    answer = world.write(acks=acks)
    assert answer() is None
    world.answer()
    assert world.log.log_end_offset == 1
    assert answer() is None if acks == 0 else answer().error_code == NONE


def test_verification_can_be_switched_off() -> None:
    world = TxnWorld({"transaction.partition.verification.enable": False})
    world.write()
    assert (world.questions, world.log.log_end_offset) == ([], 1)
    reported: list[ErrorCode] = []

    def then(error: ErrorCode, base_offset: int, now: int) -> list[Effect]:
        reported.append(error)
        return []

    offsets_of_a_group = bytearray(transactional(0, (8, 0)))
    node = world.nodes[NodeId(1)]
    world.perform(NodeId(1), node.append_internal("t", 0, offsets_of_a_group, world.now, then, transaction="id"))
    world.run(1_000)
    assert (world.questions, world.log.log_end_offset, reported) == ([], 2, [NONE])


def test_other_batches_ask_nobody(world: TxnWorld) -> None:
    world.run(100)
    assert world.produce(1) is not None
    world.run(1_000)
    assert (world.questions, world.log.log_end_offset) == ([], 1)


def test_a_transaction_of_another_epoch_is_asked_for_itself(world: TxnWorld) -> None:
    old, new = world.write(), world.write(producer=(7, 1))
    assert new() is None
    world.answer(ErrorCode.PRODUCER_FENCED)
    world.run(20)
    world.answer()
    world.run(1_000)
    assert (old().error_code, new().error_code) == (ErrorCode.INVALID_PRODUCER_EPOCH, NONE)


def test_the_answer_about_one_epoch_is_not_taken_for_that_about_another(world: TxnWorld) -> None:
    """Both wait while a request is under way, and an answer names the transactional id alone."""
    world.write(producer=(8, 0), transactional_id="other")
    old, new = world.write(), world.write(producer=(7, 1))
    world.answer()
    assert [len(question.message.transactions) for question in world.questions] == [1]
    world.answer(ErrorCode.PRODUCER_FENCED)
    world.answer()
    world.run(1_000)
    assert (old().error_code, new().error_code) == (ErrorCode.INVALID_PRODUCER_EPOCH, NONE)


def test_an_answer_with_an_error_that_nobody_knows_is_an_error(world: TxnWorld) -> None:
    answer = world.write()
    world.answer(9_999)
    assert answer().error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_no_batch_comes_before_one_that_was_held_and_refused(world: TxnWorld) -> None:
    """The log does not know the producer, and would take any sequence (see `awaited`)."""
    first = world.write(timeout_ms=100)
    world.run(100)
    asked = world.questions.pop(0)
    world.perform(NodeId(1), world.nodes[NodeId(1)].step(Failed(asked.token, Failure.CLOSED), world.now))
    world.run(100)
    assert first().error_code == ErrorCode.REQUEST_TIMED_OUT
    second = world.write(1)
    world.answer()
    assert second().error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    again = world.write()
    world.answer()
    world.run(1_000)
    assert (again().error_code, again().base_offset) == (NONE, 0)


def test_a_coordinator_that_never_answers_is_given_up(world: TxnWorld) -> None:
    """It may be this broker itself, and then no connection has a timeout."""
    first = world.write()
    world.run(11_000)
    second = world.write(transactional_id="other", producer=(8, 0))
    late = world.questions.pop(0)
    while world.questions:
        world.answer()
        world.run(1_000)
    assert (first().error_code, second().error_code) == (NONE, NONE)
    assert world.nodes[NodeId(1)].step(Answered(late.token, AddPartitionsToTxnResponse()), world.now) == []


# --- markers


def begun(world: TxnWorld) -> None:
    world.write()
    world.answer()
    world.run(1_000)
    assert world.log.transactions.open == {7: 0}


def test_a_marker_is_answered_when_it_is_committed_and_then_its_end_is_passed_on(world: TxnWorld) -> None:
    begun(world)
    ended: list[tuple[TopicPartition, int, bool]] = []

    def note(at: TopicPartition, producer_id: int, commits: bool, offset: int, now: int) -> list[Effect]:
        ended.append((at, producer_id, commits))
        return []

    world.nodes[NodeId(1)].markers.ended = note
    world.cut = {NodeId(2), NodeId(3)}
    answer = world.mark()
    assert (answer(), ended) == (None, [])
    world.cut = set()
    world.run(1_000)
    assert (answer(), ended) == (NONE, [(TopicPartition("t", 0), 7, True)])
    assert not world.log.transactions.open


def test_a_marker_is_for_the_leader(world: TxnWorld) -> None:
    assert world.mark(node=2)() == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_marker_of_an_older_coordinator_is_refused(world: TxnWorld) -> None:
    begun(world)
    world.mark(coordinator=5)
    assert world.mark(coordinator=4, epoch=2)() == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_late_marker_ends_no_later_transaction(world: TxnWorld) -> None:
    """With transaction.version 2 each end has an epoch of its own (KIP-890)."""
    begun(world)
    world.mark(commits=True, epoch=1)
    world.run(1_000)
    world.write(producer=(7, 1))
    world.answer()
    world.run(1_000)
    assert world.log.transactions.open == {7: 2}
    assert world.mark(commits=False, epoch=1)() == ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.log.transactions.open == {7: 2}


def test_a_marker_that_is_written_again_is_fine_while_nothing_is_open(world: TxnWorld) -> None:
    begun(world)
    world.mark(epoch=1)
    again = world.mark(epoch=1)
    world.run(1_000)
    assert again() == NONE


# --- read_committed


def test_a_read_committed_consumer_reads_up_to_the_last_stable_offset(world: TxnWorld) -> None:
    world.produce(1)
    world.write()
    world.answer()
    world.produce(1)
    world.run(1_000)
    row = world.read(offset=0)()
    assert (row.high_watermark, row.last_stable_offset, row.aborted_transactions) == (3, 1, ())
    assert [world.latest(isolation) for isolation in (0, 1)] == [3, 1]
    assert world.read(offset=1)().records in (None, b"")
    assert world.read(offset=1, committed=False)().records


@each("node", [1, 2])
def test_the_answer_names_the_aborted_transactions_of_what_it_has(node: int) -> None:
    """From a follower as from the leader (KIP-392)."""
    world = TxnWorld()
    begun(world)
    world.mark(commits=False)
    world.run(1_000)
    world.produce(1)
    world.run(5_000)
    aborted = world.read(node)().aborted_transactions
    assert [(one.producer_id, one.first_offset) for one in aborted] == [(7, 0)]
    assert world.read(node, offset=2)().aborted_transactions == ()
    assert world.read(node, committed=False)().aborted_transactions is None


def test_a_consumer_that_waits_gets_a_transaction_when_its_marker_is_committed(world: TxnWorld) -> None:
    begun(world)
    answer = world.read(offset=0, max_wait_ms=60_000)
    assert answer() is None
    world.mark()
    world.run(1_000)
    assert answer().last_stable_offset == 2
    assert answer().records


def test_a_follower_describes_its_producers_too(world: TxnWorld) -> None:
    """An operator may ask any broker (KIP-664)."""
    begun(world)
    request = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0, 1)),))
    for node in (1, 2):
        (reply,) = describe_producers(world.nodes[NodeId(node)].host, world.to(0), request, world.now)
        assert isinstance(reply, Reply)
        known, unknown = reply.message.topics[0].partitions
        (row,) = known.active_producers
        assert (row.producer_id, row.producer_epoch, row.current_txn_start_offset) == (7, 0, 0)
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
