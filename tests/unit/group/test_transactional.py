"""Offsets of transactions: who may commit them, when they count, and what a coordinator that loads them knows."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each
from tests.unit.group.coordination import Coordination, commit_request

from strandline.base.errors import ErrorCode as E
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from strandline.wire.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)


def txn_request(offset: int, producer_id: int = 7, partition: int = 0, **changes: Any) -> TxnOffsetCommitRequest:
    row = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
    fields = {
        "transactional_id": "id",
        "group_id": "g",
        "producer_id": producer_id,
        "producer_epoch": 0,
        "topics": (TxnOffsetCommitRequestTopic(name="t", partitions=(row,)),),
        **changes,
    }
    return TxnOffsetCommitRequest(**fields)


def error_of(answer: Any) -> E:
    return E(answer.topics[0].partitions[0].error_code)


def visible(c: Coordination, partition: int = 0) -> int:
    found = c.shard.offsets.get("g", {}).get(("t", partition))
    return -1 if found is None else found.offset


def fetched(c: Coordination, *, stable: bool, topics: bool = True) -> list[tuple[int, int, E]]:
    named = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),) if topics else None
    group = OffsetFetchRequestGroup(group_id="g", topics=named)
    answer = c.ask(OffsetFetchRequest(groups=(group,), require_stable=stable), 8)
    rows = [row for topic in answer.groups[0].topics for row in topic.partitions]
    return [(row.partition_index, row.committed_offset, E(row.error_code)) for row in rows]


def test_an_offset_counts_when_its_transaction_is_committed_and_not_before() -> None:
    c = Coordination()
    assert error_of(c.ask(txn_request(5))) == E.NONE
    assert visible(c) == -1
    c.end_transaction(7, commits=True)
    assert visible(c) == 5


def test_an_offset_of_an_aborted_transaction_never_counts() -> None:
    c = Coordination()
    c.ask(txn_request(5))
    c.end_transaction(7, commits=False)
    assert (visible(c), c.shard.pending.by_producer) == (-1, {})
    c.end_transaction(7, commits=True)
    assert visible(c) == -1


def test_an_offset_that_was_committed_later_stays() -> None:
    """In the log's order, as whoever loads it sees it."""
    c = Coordination()
    c.ask(txn_request(5))
    c.ask(commit_request(9), 9)
    c.end_transaction(7, commits=True)
    assert (visible(c), c.reload().offsets["g"]["t", 0].offset) == (9, 9)


def test_a_producer_ends_its_own_transaction_alone() -> None:
    c = Coordination()
    c.ask(txn_request(5, producer_id=7, partition=0))
    c.ask(txn_request(6, producer_id=8, partition=1))
    c.end_transaction(8, commits=True)
    assert (visible(c, 0), visible(c, 1)) == (-1, 6)


def test_the_records_are_part_of_the_producers_transaction() -> None:
    c = Coordination()
    for version in (4, 5):
        c.ask(txn_request(5), version)
    assert c.log.asked == [("id", False), ("id", True)], "version 5 also adds the group to the transaction (KIP-890)"


@each("topics", [True, False])
def test_who_asks_for_what_is_stable_is_told_that_an_offset_may_change(topics: bool) -> None:
    c = Coordination()
    c.ask(commit_request(3), 9)
    c.ask(txn_request(5))
    assert fetched(c, stable=True, topics=topics) == [(0, -1, E.UNSTABLE_OFFSET_COMMIT)]
    assert fetched(c, stable=False, topics=topics) == [(0, 3, E.NONE)]
    c.end_transaction(7, commits=True)
    assert fetched(c, stable=True, topics=topics) == [(0, 5, E.NONE)]


def test_a_member_of_an_older_generation_is_fenced() -> None:
    """So that no producer commits for partitions that another member has by now (KIP-447)."""
    c = Coordination()
    member, joined = c.enter()
    generation = c.answers[joined].generation_id
    c.sync(member, generation, {member: b""})
    c.commit()
    fine = txn_request(5, member_id=member, generation_id=generation)
    assert error_of(c.ask(fine)) == E.NONE
    assert error_of(c.ask(txn_request(5, member_id=member, generation_id=generation - 1))) == E.ILLEGAL_GENERATION
    assert error_of(c.ask(txn_request(5, member_id="x", generation_id=generation))) == E.UNKNOWN_MEMBER_ID
    assert error_of(c.ask(txn_request(5))) == E.NONE, "a client that names none of it"


@each(
    ("failure", "version", "told"),
    [
        (E.CONCURRENT_TRANSACTIONS, 5, E.COORDINATOR_LOAD_IN_PROGRESS),
        (E.NOT_COORDINATOR, 5, E.COORDINATOR_LOAD_IN_PROGRESS),
        (E.PRODUCER_FENCED, 5, E.INVALID_PRODUCER_EPOCH),
        (E.INVALID_PRODUCER_ID_MAPPING, 5, E.INVALID_PRODUCER_ID_MAPPING),
        (E.TRANSACTION_ABORTABLE, 5, E.TRANSACTION_ABORTABLE),
        (E.TRANSACTION_ABORTABLE, 3, E.INVALID_TXN_STATE),
        (E.NOT_LEADER_OR_FOLLOWER, 5, E.NOT_COORDINATOR),
    ],
)
def test_what_is_refused_is_not_pending(failure: E, version: int, told: E) -> None:
    c = Coordination()
    number = c.send(txn_request(5), version)
    c.fail(failure)
    assert (error_of(c.answers[number]), c.shard.pending.by_producer) == (told, {})


def test_an_offset_that_a_transaction_may_change_is_not_forgotten() -> None:
    c = Coordination()
    c.ask(commit_request(3), 9)
    c.ask(txn_request(5))
    c.wait(30 * 24 * 3600 * 1000)
    c.commit()
    assert visible(c) == 3
    c.end_transaction(7, commits=False)
    c.wait(24 * 3600 * 1000)
    c.commit()
    assert visible(c) == -1


steps = st.lists(
    st.one_of(
        st.tuples(st.just("transaction"), st.integers(7, 9), st.integers(0, 1)),
        st.tuples(st.just("transaction"), st.integers(7, 9), st.integers(0, 1)),
        st.tuples(st.just("plain"), st.just(0), st.integers(0, 1)),
        st.tuples(st.just("commit"), st.integers(7, 9), st.just(0)),
        st.tuples(st.just("abort"), st.integers(7, 9), st.just(0)),
    ),
    max_size=30,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_what_counts_is_the_last_record_that_is_not_aborted_and_a_reload_says_the_same(
    script: list[tuple[str, int, int]],
) -> None:
    c = Coordination()
    written: list[tuple[int, int, int]] = []  # producer (0: none), partition, offset: in the log's order
    over: dict[int, bool] = {}  # by the number of the record in `written`
    for value, (what, producer, partition) in enumerate(script):
        match what:
            case "transaction":
                c.ask(txn_request(value, producer, partition))
                written.append((producer, partition, value))
            case "plain":
                c.ask(commit_request(value, partition=partition), 9)
                over[len(written)] = True
                written.append((0, partition, value))
            case _:
                c.end_transaction(producer, commits=what == "commit")
                for number, row in enumerate(written):
                    if row[0] == producer:
                        over.setdefault(number, what == "commit")
    for partition in (0, 1):
        counts = [row[2] for number, row in enumerate(written) if row[1] == partition and over.get(number)]
        assert visible(c, partition) == (counts[-1] if counts else -1)
    loaded = c.reload()
    assert loaded.offsets == c.shard.offsets
    assert loaded.pending.by_producer == c.shard.pending.by_producer
