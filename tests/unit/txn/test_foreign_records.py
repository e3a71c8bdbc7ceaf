"""Records of `__transaction_state` that another program has written: a coordinator skips them, or goes on from them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each
from tests.unit.txn.world import ID, START, T0, World, end_request, init_request

from strandline.base.errors import ErrorCode as E
from strandline.base.time import Instant
from strandline.txn.states import State
from strandline.txn.transaction import EPOCH_LAST, restored
from strandline.wire.batch import build
from strandline.wire.compress import Corrupt
from strandline.wire.messages.transactions.transaction_records import (
    PartitionsSchema,
    TransactionLogValue,
    decode_value,
    encode_key,
    encode_value,
)

IDS = st.sampled_from((-2, -1, 0, 99, 100, 101, 102))  # the broker gives out 100 and what follows
EPOCHS = st.sampled_from((-1, 0, 1, 2, EPOCH_LAST - 1, EPOCH_LAST, EPOCH_LAST + 1))
VALUES = st.builds(
    TransactionLogValue,
    producer_id=IDS,
    previous_producer_id=IDS,
    next_producer_id=IDS,
    producer_epoch=EPOCHS,
    next_producer_epoch=EPOCHS,
    transaction_timeout_ms=st.sampled_from((-1, 0, 1_000, (1 << 31) - 1)),
    transaction_status=st.integers(-1, 7),
    transaction_partitions=st.sampled_from(
        (
            None,
            (),
            (PartitionsSchema(topic="t", partition_ids=(1, 0, 0)), PartitionsSchema(topic="?", partition_ids=(-1,))),
        )
    ),
    transaction_last_update_timestamp_ms=st.sampled_from((-1, 0, (1 << 63) - 1)),
    transaction_start_timestamp_ms=st.sampled_from((-1, 0, (1 << 63) - 1)),
    client_transaction_version=st.sampled_from((0, 1, 2, 3)),
)


def asked(w: World, request: Any) -> Any:
    """As a client asks: again, while something else is under way."""
    for _ in range(4):
        number = w.send(request)
        w.run_until_idle()
        if w.answers[number].error_code != E.CONCURRENT_TRANSACTIONS:
            break
    return w.answers[number]


def batch(**changes: object) -> bytes:
    """A record of an open transaction, or with these changes."""
    rows = {"producer_id": 7, "producer_epoch": 3, "transaction_timeout_ms": 60_000, "transaction_status": 1, **changes}
    value = TransactionLogValue(**rows)  # type: ignore[arg-type]
    return bytes(build([(Instant(START), encode_key(ID), encode_value(value, 1), ())]))


@given(VALUES, st.booleans())
def test_an_id_with_any_record_can_be_taken_over_used_and_ended(value: TransactionLogValue, keeps: bool) -> None:
    decoded = decode_value(encode_value(value, 1))
    assert decoded is not None
    try:
        found = restored(ID, decoded)
    except Corrupt:
        return
    w = World(two_phase_commit_enable=True)
    w.put(found)
    w.run_until_idle()
    answer = asked(w, init_request(keep_prepared_txn=keeps, enable2_pc=keeps))
    producer = answer.producer_id, answer.producer_epoch
    assert answer.error_code == E.NONE and producer == w.current().client
    if not w.current().is_kept:
        assert w.add(producer, T0) == {T0: E.NONE}
    answer = asked(w, end_request(producer))
    assert answer.error_code == E.NONE
    assert w.current().state is State.COMPLETE_COMMIT


def test_what_follows_a_transaction_is_no_concern_of_an_idle_id() -> None:
    w = World()
    w.log.batches.append(batch(next_producer_id=8, next_producer_epoch=9, transaction_status=State.COMPLETE_COMMIT))
    w.lead(1)
    assert w.add((7, 3), T0) == {T0: E.NONE}
    assert w.end((7, 3)).error_code == E.NONE


@each("status", [State.EMPTY, State.ONGOING])
def test_an_exhausted_producer_gets_no_id_that_its_record_has_already(status: State) -> None:
    w = World()
    w.log.batches.append(batch(producer_id=100, producer_epoch=EPOCH_LAST, transaction_status=status))
    w.lead(1)
    assert asked(w, init_request()).producer_id == 101


def test_an_exhausted_producer_that_ends_its_transaction_gets_no_id_that_its_record_has_already() -> None:
    w = World()
    w.log.batches.append(batch(producer_id=100, producer_epoch=EPOCH_LAST))
    w.lead(1)
    answer = w.end((100, EPOCH_LAST))
    assert (answer.producer_id, answer.producer_epoch) == (101, 0)
