"""What it means if a committed record of `__transaction_state` is lost: each row of the table in docs/losses.md. More
replicas have failed then than the topic was set up for; nothing can make it right, and the page says what is wrong."""

from tests.unit.txn.world import T0, T1, World, add_request, end_request

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import LeaderEpoch
from strandline.txn.states import State


def lose_last(w: World) -> None:
    """The next coordinator does not have the last record."""
    w.log.batches.pop()
    w.sent.clear()
    w.transactions.markers.under_way.clear()
    w.lead(LeaderEpoch((w.log.epoch or 0) + 1))


def outcomes(w: World) -> dict[str, set[bool]]:
    """What the markers in each partition say; the first of a partition has ended the transaction there."""
    found: dict[str, set[bool]] = {}
    for at, _, _, commits, _ in w.written:
        found.setdefault(str(at), {commits})
    return found


def test_a_lost_commit_is_aborted_where_it_had_no_marker_so_the_transaction_is_not_atomic() -> None:
    w = World()
    producer = w.begun(T0, T1)
    assert w.end(producer).error_code == E.NONE, "the producer has heard of it"
    w.write_markers()
    lose_last(w)
    assert w.current().state is State.ONGOING
    w.wait(80_000)
    w.run_until_idle()
    assert outcomes(w) == {str(T0): {True}, str(T1): {False}}
    assert w.end(producer).error_code == E.INVALID_TXN_STATE


def test_a_lost_abort_is_aborted_once_more_and_nothing_is_wrong() -> None:
    w = World()
    producer = w.begun(T0, T1)
    w.end(producer, commits=False)
    w.write_markers()
    lose_last(w)
    w.wait(80_000)
    w.run_until_idle()
    assert outcomes(w) == {str(T0): {False}, str(T1): {False}}


def test_a_lost_completion_has_all_markers_written_again() -> None:
    w = World()
    producer = w.begun(T0, T1)
    w.end(producer)
    w.run_until_idle()
    lose_last(w)
    w.run_until_idle()
    assert [row[3] for row in w.written] == [True] * 4
    assert w.current().state is State.COMPLETE_COMMIT


def test_a_partition_whose_record_is_lost_gets_no_marker_so_the_transaction_hangs_there() -> None:
    w = World()
    producer = w.begun(T0)
    w.ask(add_request(producer, T1, old=False), 5)
    lose_last(w)
    assert w.end(producer).error_code == E.NONE
    w.run_until_idle()
    assert outcomes(w) == {str(T0): {True}}


def test_a_transaction_whose_only_record_is_lost_cannot_be_committed() -> None:
    w = World()
    producer = w.begun(T0, T1)
    lose_last(w)
    assert w.ask(end_request(producer)).error_code == E.INVALID_TXN_STATE
    assert not w.written


def test_an_epoch_whose_record_is_lost_is_given_out_again_and_who_was_fenced_may_go_on() -> None:
    w = World()
    zombie = w.start()
    newer = w.start()
    lose_last(w)
    assert w.add(zombie, T0) == {T0: E.NONE}
    w.end(zombie, commits=False)
    w.run_until_idle()
    assert w.current().client == newer
