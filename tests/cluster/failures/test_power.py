"""Real processes that lose power: KIP-966's motivating scenario, and a short campaign of `power.py`."""

from pathlib import Path

import pytest
from tests.cluster.failures.test_hour import json_of
from tests.cluster.hour import Wrong
from tests.cluster.transactional_load import whole

from strandline.base.ids import Uuid
from strandline.history.operation import Key, Kind, Operation, Outcome, Read, Write


@pytest.mark.cluster
def test_last_replica_standing_acknowledged_records_vanish_without_elr_and_none_does_with_it(tmp_path: Path) -> None:
    """KIP-966, Motivation: T0 to T4."""
    html = tmp_path / "page.html"
    found = json_of("strandline", "demo", "last-replica", "--records", "200", "--html", str(html), "--json")
    off, on = found["elr_off"], found["elr_on"]
    # What was written between T0 and T1 was in page caches only.
    assert (off["acknowledged"], off["lost"], off["first_lost"], off["last_lost"]) == (600, 200, 200, 399)
    assert (on["acknowledged"], on["lost"], on["replaced"]) == (800, 0, 0)
    assert (off["ledger_lost"], on["ledger_lost"]) == (200, 0)
    assert [m["leader"] for m in off["moments"]] == [0, 1, 2, -1, -1, 2]
    assert [m["isr"] for m in off["moments"][2:5]] == [[2], [2], [2]]
    assert [m["leader"] for m in on["moments"]] == [0, 1, 2, -1, 1, 1]
    assert [m["isr"] for m in on["moments"][2:4]] == [[2], []]
    assert [m["elr"] for m in on["moments"][2:4]] == [[1], [1, 2]]
    assert found["holds"]
    assert "200</b>" in html.read_text()


@pytest.mark.cluster
def test_machines_that_lose_power_one_at_a_time_take_no_acknowledged_record_with_them() -> None:
    found = json_of("tests.cluster.power", "--cuts", "2", "--seed", "1")
    assert found["anomalies"] == 0
    assert found["faults"]["power cut that cost records"] == 2
    assert found["acknowledged with acks=all"] > 100
    assert found["of these lost"] == 0
    assert found["unclean elections"] == 0


@pytest.mark.cluster
@pytest.mark.long
def test_machines_that_lose_power_leave_every_transaction_whole_or_nowhere() -> None:
    found = json_of("tests.cluster.power", "--cuts", "3", "--seed", "1", "--load", "transactions")
    assert found["anomalies"] == 0
    assert found["transactions committed"] > 10
    assert found["transactions not committed"] > 0
    assert found["of these anything read"] == found["of these not wholly there"] == found["unclean elections"] == 0


AT = Key("t", Uuid(b"0123456789abcdef"), 0)


def judged(outcome: Outcome, *read: bytes, by: str = "last-t") -> dict[str, int]:
    """A transaction of two records, and what readers got."""
    writes = (Write(AT, b"a", 0), Write(AT, b"b", 1))
    sent = Operation("p", Kind.SEND, 0, 1, outcome, writes=writes, transactional_id="id")
    reads = tuple(Read(AT, offset, value) for offset, value in enumerate(read))
    return whole([sent, Operation(by, Kind.POLL, 2, 3, Outcome.OK, reads=reads)])


@pytest.mark.parametrize(
    ("outcome", "read", "is_wrong"),
    [
        (Outcome.OK, (b"a", b"b"), False),
        (Outcome.OK, (b"a",), True),
        (Outcome.OK, (), True),
        (Outcome.OK, (b"a", b"b", b"a"), True),
        (Outcome.FAIL, (), False),
        (Outcome.FAIL, (b"b",), True),
        (Outcome.UNKNOWN, (), False),
        (Outcome.UNKNOWN, (b"a", b"b"), False),
        (Outcome.UNKNOWN, (b"b",), True),
        (Outcome.OK, (b"a", b"b", b"nobody's"), True),
    ],
)
def test_a_transaction_that_is_there_in_part_or_twice_or_though_it_was_not_committed_is_noticed(
    outcome: Outcome, read: tuple[bytes, ...], is_wrong: bool
) -> None:
    try:
        judged(outcome, *read)
    except Wrong:
        assert is_wrong
    else:
        assert not is_wrong


def test_what_was_not_committed_may_never_have_been_read() -> None:
    with pytest.raises(Wrong):
        judged(Outcome.FAIL, b"a", by="an earlier reader")
