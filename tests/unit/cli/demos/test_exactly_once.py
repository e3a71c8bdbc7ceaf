"""The bank's books: how they are counted, and what the terminal and the page say of them."""

from collections.abc import Iterable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from tests.rows import each
from tests.unit.cli.demos.test_last_replica import Balanced

from strandline.cli.lab.exactly_once import as_json, exactly_once, show
from strandline.demo.exactly_once.bank import (
    Booking,
    booking_bytes,
    booking_of,
    bookings,
    transfer_bytes,
    transfer_of,
    transfers,
)
from strandline.demo.exactly_once.count import Count, count, taken_back
from strandline.demo.exactly_once.page import page
from strandline.demo.exactly_once.play import Event, ExactlyOnceResult, Wish
from strandline.demo.exactly_once.words import verdict

ACCOUNTS = 10
TRANSFERS = list(transfers(20, ACCOUNTS, seed=1))
BOOKED = [booking for transfer in TRANSFERS for booking in bookings(transfer, 0)]
AMOUNT = TRANSFERS[0].amount


def counted(booked: Iterable[Booking]) -> Count:
    return count(TRANSFERS, booked, ACCOUNTS)


GOOD = counted(BOOKED)
TWICE = counted(BOOKED + BOOKED[1:2])


def outcome(with_transactions: Count = GOOD, without: Count = TWICE, **fields: Any) -> ExactlyOnceResult:
    events = (Event(1.0, "step", "begin", (0, 0)), Event(2.5, "kill", "node 1 is <killed>", (5, 20)))
    known = {"aborted": 3, "taken_back": 0, "all_ended": True, **fields}
    return ExactlyOnceResult(Wish(ACCOUNTS, 20, 2, 1), 9.0, events, with_transactions, without, **known)


def test_records_give_back_what_was_written() -> None:
    assert [transfer_of(transfer_bytes(transfer)) for transfer in TRANSFERS] == TRANSFERS
    assert [booking_of(booking_bytes(booking)) for booking in BOOKED] == BOOKED
    assert all(transfer.debtor != transfer.creditor for transfer in TRANSFERS)


def test_books_in_which_each_transfer_has_one_debit_and_one_credit_hold() -> None:
    assert Count(20, 20, 0, 0, 0, 0, 40, 10_000, 10_000) == GOOD
    assert GOOD.holds


@each(
    "booked, once, twice, one_sided, missing, strange, difference",
    [
        pytest.param(BOOKED + BOOKED[:2], 19, 1, 0, 0, 0, 0, id="a transfer twice"),
        pytest.param(BOOKED + BOOKED[1:2], 19, 1, 1, 0, 0, AMOUNT, id="a credit twice"),
        pytest.param(BOOKED[1:], 19, 0, 1, 0, 0, AMOUNT, id="no debit"),
        pytest.param(BOOKED[2:], 19, 0, 0, 1, 0, 0, id="a transfer missing"),
        pytest.param([*BOOKED, Booking(20, 1, 7, 0)], 20, 0, 0, 0, 1, 7, id="of no transfer"),
        pytest.param([*BOOKED, Booking(20, 1, 0, 0)], 20, 0, 0, 0, 1, 0, id="of no transfer and no amount"),
    ],
)
def test_other_books_do_not(
    booked: list[Booking], once: int, twice: int, one_sided: int, missing: int, strange: int, difference: int
) -> None:
    found = counted(booked)
    reported = (found.once, found.twice, found.one_sided, found.missing, found.strange, found.after - found.before)
    assert reported == (once, twice, one_sided, missing, strange, difference)
    assert not found.holds


def test_what_a_reader_saw_must_be_there_in_the_end() -> None:
    found = {(0, offset): booking for offset, booking in enumerate(BOOKED)}
    assert taken_back(dict(list(found.items())[:7]), found) == 0
    assert taken_back(found | {(1, 0): BOOKED[0], (0, 0): BOOKED[1]}, found) == 2


@each(
    "shown, words",
    [
        (outcome(), "Without transactions 1 transfers are wrong"),
        (outcome(without=GOOD), "was lucky"),
        (outcome(TWICE), "1 transfers are booked twice"),
        (outcome(taken_back=2), "2 bookings were read"),
        (outcome(all_ended=False), "a transaction is still open"),
        (outcome(count([], [], ACCOUNTS)), "nothing was transferred"),
    ],
)
def test_the_verdict_says_what_was_shown(shown: ExactlyOnceResult, words: str) -> None:
    assert words in verdict(shown)
    assert shown.holds == verdict(shown).startswith("1 kills, and each of 20 transfers is booked exactly once")
    assert as_json(shown)["holds"] == shown.holds


def test_the_terminal_shows_both_counts() -> None:
    output = StringIO()
    show(outcome(), Console(file=output, width=100))
    assert f"10,{AMOUNT:03}" in output.getvalue()
    assert "exactly once" in output.getvalue()


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    document = page(outcome())
    reader = Balanced()
    reader.feed(document)
    reader.close()
    assert (reader.open, reader.linked) == ([], [])
    assert "url(" not in document
    assert "@" not in document.partition("<body>")[2]
    assert "node 1 is &lt;killed&gt;" in document
    assert "width:25.00%" in document


@each("options", [{"kills": -1}, {"workers": 0}, {"accounts": 1}, {"kills": 3, "transfers": 3}])
def test_options_that_make_no_sense_are_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(SystemExit) as ended:
        exactly_once(**options)
    assert ended.value.code == 2
