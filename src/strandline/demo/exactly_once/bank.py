"""The bank: transfers between accounts, the two bookings of each, and how both are written in records."""

import random
from collections.abc import Iterator

from strandline.base.value import Value

TRANSFERS = "transfers"
TRANSFER_PARTITIONS = 6
BOOKING_PARTITIONS = 3
OPENING = 1_000  # what each account has at first; it may be overdrawn
AMOUNT_MAX = 100


class Transfer(Value, frozen=True):
    number: int
    debtor: int
    creditor: int
    amount: int


class Booking(Value, frozen=True):
    transfer: int
    account: int
    amount: int  # negative: the account pays
    worker: int


def transfers(count: int, accounts: int, seed: int) -> Iterator[Transfer]:
    """Each moves money between two different accounts."""
    assert accounts >= 2
    draw = random.Random(seed)
    for number in range(count):
        debtor, creditor = draw.sample(range(accounts), 2)
        yield Transfer(number, debtor, creditor, draw.randint(1, AMOUNT_MAX))


def bookings(transfer: Transfer, worker: int) -> tuple[Booking, Booking]:
    return (
        Booking(transfer.number, transfer.debtor, -transfer.amount, worker),
        Booking(transfer.number, transfer.creditor, transfer.amount, worker),
    )


def booking_partition(account: int) -> int:
    return account % BOOKING_PARTITIONS


def transfer_bytes(transfer: Transfer) -> bytes:
    return b"%d %d %d %d" % (transfer.number, transfer.debtor, transfer.creditor, transfer.amount)


def transfer_of(value: object) -> Transfer:
    return Transfer(*numbers(value))


def booking_bytes(booking: Booking) -> bytes:
    return b"%d %d %d %d" % (booking.transfer, booking.account, booking.amount, booking.worker)


def booking_of(value: object) -> Booking:
    return Booking(*numbers(value))


def numbers(value: object) -> list[int]:
    assert isinstance(value, bytes)
    return [int(word) for word in value.split()]
