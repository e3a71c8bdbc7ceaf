"""Batches on their way to one partition, and where a fetch's batches end."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from strandline.client.fetching import whole_batches
from strandline.client.lanes import Lane, Pending, State
from strandline.wire.batch import SEQUENCE_MAX, build, read_header, why_invalid


def batch_of(count: int) -> bytearray:
    return bytearray(build([(0, None, b"v", ())] * count))


class Partition(RuleBasedStateMachine):
    """A lane against a broker that takes what follows, knows the last five batches again, and may lose its leader.

    Three batches at most are in flight, by one connection: answers come in order, or the connection breaks."""

    def __init__(self) -> None:
        super().__init__()
        self.lane = Lane("t", 0, 5, 0, SEQUENCE_MAX - 3)
        self.log: list[int] = []  # tags, as the broker wrote them
        self.state: list[tuple[int, int]] = []  # (first sequence, last) of what was written
        self.wire: list[tuple[Pending, str]] = []  # answers that have not been read yet
        self.tags = 0
        self.acknowledged: list[int] = []

    @rule(count=st.integers(1, 3))
    def another(self, count: int) -> None:
        self.lane.append(Pending(batch_of(count), self.tags, None))
        self.tags += 1

    @precondition(lambda self: len(self.wire) < 3)
    @rule(fate=st.sampled_from(["fine", "fine", "refused", "written, but refused"]))
    def send(self, fate: str) -> None:
        batch = self.lane.next_to_send(1.0)
        if batch is None:
            return
        self.lane.sent(batch, 1)
        answer = fate
        if fate == "fine" or fate.startswith("written"):
            first, last = batch.sequence, batch.sequence + batch.count - 1 & SEQUENCE_MAX
            if (first, last) in self.state[-5:]:
                pass  # a duplicate, answered as the first time
            elif not self.state or self.state[-1][1] + 1 & SEQUENCE_MAX == first:
                self.state.append((first, last))
                self.log.append(batch.tag)
            else:
                answer = "out of order"
        self.wire.append((batch, answer))

    @precondition(lambda self: self.wire)
    @rule()
    def answer(self) -> None:
        batch, answer = self.wire.pop(0)
        if answer == "fine":
            self.lane.acknowledged(batch)
            self.acknowledged.append(batch.tag)
        else:
            assert answer != "out of order" or self.lane.failed, "a sequence is lost"
            self.lane.refused(batch, answer)
        self.restart()

    @precondition(lambda self: self.wire)
    @rule()
    def break_connection(self) -> None:
        for batch, _ in self.wire:
            self.lane.refused(batch, "broken")
        self.wire.clear()
        self.restart()

    def restart(self) -> None:
        if self.lane.failed and not self.lane.in_flight:
            self.lane.restart(0.0)

    @invariant()
    def nothing_is_doubled_and_order_holds(self) -> None:
        self.lane.check()
        assert self.log == list(range(len(self.log)))
        assert len(set(self.acknowledged)) == len(
            self.acknowledged
        )  # not in order where an earlier one was written, but refused
        assert all(tag in self.log for tag in self.acknowledged)


Partition.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
test_a_lane_keeps_its_order_whatever_fails = Partition.TestCase


def test_a_renewed_lane_begins_a_sequence_of_its_own() -> None:
    lane = Lane("t", 0, 5, 0, 10)
    for _ in range(3):
        lane.append(Pending(batch_of(2), None, None))
    first = lane.next_to_send(0)
    assert first is not None
    lane.sent(first, 1)
    assert lane.next_to_send(0) is None  # the broker does not know the producer yet
    lane.refused(first, "OUT_OF_ORDER_SEQUENCE_NUMBER")
    lane.renew(9, 1)
    lane.restart(0.0)
    headers = [read_header(batch.bytes) for batch in lane.pending]
    assert [(h.producer_id, h.producer_epoch, h.base_sequence) for h in headers] == [(9, 1, 0), (9, 1, 2), (9, 1, 4)]
    assert [why_invalid(h, batch.bytes) for h, batch in zip(headers, lane.pending, strict=True)] == [None] * 3
    lane.check()


def test_without_idempotence_a_batch_that_was_taken_is_not_sent_again() -> None:
    lane = Lane("t", 0, -1, -1, 0)
    batches = [Pending(batch_of(1), i, None) for i in range(3)]
    for batch in batches:
        lane.append(batch)
        lane.sent(batch, 1)
    lane.refused(batches[0], "no")
    lane.acknowledged(batches[1])
    lane.acknowledged(batches[2])
    lane.restart(0.0)
    assert [batch.state for batch in lane.pending] == [State.WAITS, State.DONE, State.DONE]
    lane.sent(batches[0], 2)
    lane.acknowledged(batches[0])
    assert not lane.pending
    lane.check()


def test_a_fetch_ends_with_its_last_whole_batch() -> None:
    first, second = (
        build([(0, None, b"a", ())] * 3, leader_epoch=4),
        build([(0, None, b"b", ())] * 2, base_offset=10, leader_epoch=5),
    )
    whole = first + second
    for cut in range(len(whole) + 1):
        size, next_offset, epoch = whole_batches(memoryview(whole[:cut]))
        if cut < len(first):
            assert (size, next_offset, epoch) == (0, -1, None)
        elif cut < len(whole):
            assert (size, next_offset, epoch) == (len(first), 3, 4)
        else:
            assert (size, next_offset, epoch) == (len(whole), 12, 5)
