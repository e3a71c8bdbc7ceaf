"""Before the first batch of a transaction is appended, its coordinator is asked (KIP-890).

An older client has told the coordinator which partitions its transaction has, and that is verified. For a newer one
(`adds`) the partition is added now. So no partition has records of a transaction that its coordinator does not know of,
and no late batch begins one that nobody ends.

Rules:
  - batches of one producer for one partition are appended in the order in which they came, also those that come while
    the coordinator is asked
  - a marker that is appended meanwhile may have ended the transaction that was verified: the coordinator is asked again
  - each coordinator is asked with one request at a time, for all that waits for it; what it cannot answer just now is
    asked again
  - of one transactional id a request has one producer at most, for the answer has the id alone
  - who waits is answered as soon as this leadership ends
"""

from collections.abc import Callable

from strandline.base.effects import Answered, Effect, Failed, Failure, ToBroker
from strandline.base.errors import ErrorCode, error_of
from strandline.base.ids import NOBODY, TRANSACTION_TOPIC, NodeId, TopicPartition, by_topic
from strandline.base.time import Instant
from strandline.base.timers import Alarm
from strandline.coordination.partitioning import coordinator_of
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.replica.tokens import VerificationSent
from strandline.wire.batch import BatchHeader
from strandline.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

VERSION = 5
TIMEOUT_MS = 10_000
GIVEN_UP_MS = 11_000  # this broker itself may be the coordinator, and what it asks of itself has no timeout
WAITING_MAX = 100_000  # batches

# The coordinator is another one, or does not know yet.
AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # or it does not know of a new topic yet; then it adds none of what was asked
    ErrorCode.OPERATION_NOT_ATTEMPTED,
)
Then = Callable[[ErrorCode, Instant], list[Effect]]


class Question:
    """A producer's transaction in one partition, and the batches that wait for the answer."""

    __slots__ = (
        "adds",
        "done",
        "hosted",
        "is_stale",
        "leader",
        "not_before",
        "producer",
        "required",
        "then",
        "transactional_id",
        "until",
        "verifying",
    )

    def __init__(
        self,
        verifying: "Verifying",
        hosted: Hosted,
        leader: Leader,
        transactional_id: str,
        producer: tuple[int, int],
        adds: bool,
        until: int,
    ) -> None:
        self.verifying = verifying
        self.hosted = hosted
        self.leader = leader
        self.transactional_id = transactional_id
        self.producer = producer  # id and epoch
        self.adds = adds
        self.until = until
        self.is_stale = False  # a marker came meanwhile
        self.then: list[Then] = []
        self.not_before = 0  # a coordinator that could not say was asked a moment ago
        self.required = 0  # no high watermark answers it
        self.done = False

    @property
    def is_led(self) -> bool:
        return self.hosted.role is self.leader and not self.hosted.gone

    def complete(self, error: ErrorCode, now: Instant) -> list[Effect]:
        return self.verifying.answer(self, error, now)


class Verifying:
    def __init__(self, host: Host) -> None:
        self.host = host
        # By partition and producer id; of each epoch one, and all but one of them are late or will be fenced.
        self.questions: dict[tuple[Hosted, int], dict[int, Question]] = {}
        self.idle: dict[Question, None] = {}  # those that nobody was asked
        self.under_way: dict[NodeId, tuple[int, list[Question], int]] = {}  # the last: when it is given up
        self.count = 0  # of requests
        self.waiting = 0  # batches
        self.failures = 0  # partitions that a coordinator did not confirm
        self.wake = Alarm(host.timers, self.go_on)
        self.late = Alarm(host.timers, self.give_up)

    def must_ask(self, hosted: Hosted, leader: Leader, header: BatchHeader) -> bool:
        """May this batch not be appended at once?"""
        if not header.is_transactional:
            return False
        if header.producer_epoch in self.questions.get((hosted, header.producer_id), ()):
            return True
        known = leader.log.producers.known.get(header.producer_id)
        if known is not None and header.producer_epoch < known.epoch:
            return False  # the log refuses it
        is_open = leader.log.transactions.is_open(header.producer_id)
        # guard: newer-epoch-is-not-asked-for
        is_known = is_open and known is not None and known.epoch == header.producer_epoch
        return not is_known and self.is_enabled  # guard: nothing-is-verified

    @property
    def is_enabled(self) -> bool:
        return bool(self.host.number("transaction.partition.verification.enable"))

    @property
    def pause_ms(self) -> int:
        return int(self.host.number("add.partitions.to.txn.retry.backoff.ms"))

    def ask(
        self,
        hosted: Hosted,
        leader: Leader,
        transactional_id: str,
        header: BatchHeader,
        then: Then,
        now: Instant,
        *,
        adds: bool,
        patience_ms: int,
    ) -> list[Effect]:
        """`then` is called with NONE when the batch may be appended, and in the order of calls; never at once."""
        assert not self.is_full
        producer = header.producer_id, header.producer_epoch
        epochs = self.questions.setdefault((hosted, header.producer_id), {})
        question = epochs.get(header.producer_epoch)
        self.waiting += 1
        if question is not None:
            question.then.append(then)
            return []
        question = Question(
            self, hosted, leader, transactional_id, producer, adds, now + max(patience_ms, self.pause_ms)
        )
        question.then.append(then)
        epochs[header.producer_epoch] = question
        hosted.held[question] = None
        self.idle[question] = None
        node = coordinator_of(transactional_id, TRANSACTION_TOPIC, self.host.image)
        if node == NOBODY:
            self.wake.set(now + self.pause_ms)
            return []
        return [] if node in self.under_way else [self.send(node, [question], now)]

    @property
    def is_full(self) -> bool:
        return self.waiting >= WAITING_MAX

    def marker_written(self, hosted: Hosted, producer_id: int) -> None:
        for question in self.questions.get((hosted, producer_id), {}).values():
            question.is_stale = True

    # --- asking

    def go_on(self, now: Instant) -> list[Effect]:
        """Ask for what waits, where a coordinator can be asked."""
        effects: list[Effect] = []
        by_node: dict[NodeId, list[Question]] = {}
        for question in list(self.idle):
            if not question.is_led:
                effects += self.answer(question, ErrorCode.NOT_LEADER_OR_FOLLOWER, now)
            elif question.until <= now:
                effects += self.answer(question, ErrorCode.REQUEST_TIMED_OUT, now)
            else:
                node = coordinator_of(question.transactional_id, TRANSACTION_TOPIC, self.host.image)
                if node == NOBODY or now < question.not_before:
                    self.wake.set(question.not_before if now < question.not_before else now + self.pause_ms)
                elif node not in self.under_way:
                    by_node.setdefault(node, []).append(question)
        for node, questions in by_node.items():
            effects.append(self.send(node, questions, now))
        return effects

    def send(self, node: NodeId, questions: list[Question], now: Instant) -> Effect:
        assert node not in self.under_way and questions
        grouped: dict[tuple[str, tuple[int, int], bool], list[TopicPartition]] = {}
        asked: dict[str, tuple[tuple[int, int], bool]] = {}
        for question in questions:
            who = question.producer, question.adds
            if asked.setdefault(question.transactional_id, who) != who:
                continue  # it is asked with the next request
            question.is_stale = False
            del self.idle[question]
            grouped.setdefault((question.transactional_id, *who), []).append(question.hosted.name)
        self.count += 1
        asked_now = [question for question in questions if question not in self.idle]
        assert asked_now, "the first one is always asked"
        self.under_way[node] = self.count, asked_now, now + GIVEN_UP_MS
        self.late.set(now + GIVEN_UP_MS)
        transactions = tuple(
            AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer[0],
                producer_epoch=producer[1],
                verify_only=not adds,
                topics=tuple(
                    AddPartitionsToTxnTopic(name=name, partitions=ids) for name, ids in by_topic(partitions).items()
                ),
            )
            for (transactional_id, producer, adds), partitions in grouped.items()
        )
        request = AddPartitionsToTxnRequest(transactions=transactions)
        return ToBroker(node, "transactions", request, VERSION, TIMEOUT_MS, VerificationSent(node, self.count))

    def step(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        sent: VerificationSent = event.token
        if sent.leader not in self.under_way or self.under_way[sent.leader][0] != sent.sequence:
            return []  # it was given up
        _, questions, _ = self.under_way.pop(sent.leader)
        errors = errors_in(event.message) if isinstance(event, Answered) else {}
        effects: list[Effect] = []
        for question in questions:
            assert question not in self.idle, "it was asked"
            if question.done:
                continue  # the leadership has ended
            error = errors.get((question.transactional_id, question.hosted.name), ErrorCode.NETWORK_EXCEPTION)
            if not question.is_led:
                effects += self.answer(question, ErrorCode.NOT_LEADER_OR_FOLLOWER, now)
            elif error not in AGAIN and not question.is_stale:
                self.failures += error is not ErrorCode.NONE
                effects += self.answer(question, error, now)
            elif question.until <= now:
                effects += self.answer(question, ErrorCode.REQUEST_TIMED_OUT, now)
            else:
                question.not_before = now + self.pause_ms
                self.idle[question] = None
        return effects + self.go_on(now)

    def give_up(self, now: Instant) -> list[Effect]:
        """An answer that waits for a commit may never come: what else waits for that coordinator must not."""
        late = [VerificationSent(node, number) for node, (number, _, due) in self.under_way.items() if due <= now]
        others = [due for _, _, due in self.under_way.values() if due > now]
        if others:
            self.late.set(min(others))
        return [effect for sent in late for effect in self.step(Failed(sent, Failure.TIMED_OUT), now)]

    def answer(self, question: Question, error: ErrorCode, now: Instant) -> list[Effect]:
        assert not question.done, "answered once"
        question.done = True
        question.hosted.held.pop(question, None)
        key = question.hosted, question.producer[0]
        del self.questions[key][question.producer[1]]
        if not self.questions[key]:
            del self.questions[key]
        self.idle.pop(question, None)
        self.waiting -= len(question.then)
        effects: list[Effect] = []
        for then in question.then:
            effects += then(error, now)
        return effects

    def check(self) -> None:
        known = {question for epochs in self.questions.values() for question in epochs.values()}
        assert self.waiting == sum(len(question.then) for question in known)
        asked = [question for _, questions, _ in self.under_way.values() for question in questions if not question.done]
        assert known == {*asked, *self.idle}
        assert len(asked) + len(self.idle) == len(known), "a question is asked once at a time"
        assert self.waiting <= WAITING_MAX
        assert all(question in question.hosted.held for question in known), "it is answered if the leadership ends"
        assert not self.idle or self.under_way or not self.wake.done, "somebody is asked again"
        assert not self.under_way or not self.late.done, "an answer that does not come is given up"
        for (hosted, producer_id), epochs in self.questions.items():
            assert epochs, hosted.name
            assert all(question.producer == (producer_id, epoch) for epoch, question in epochs.items())


def errors_in(response: AddPartitionsToTxnResponse) -> dict[tuple[str, TopicPartition], ErrorCode]:
    if response.error_code:
        return {}
    return {
        (one.transactional_id, TopicPartition(topic.name, row.partition_index)): error_of(row.partition_error_code)
        for one in response.results_by_transaction
        for topic in one.topic_results
        for row in topic.results_by_partition
    }
