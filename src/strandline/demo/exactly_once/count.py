"""What the bank's books say when all is over: each transfer booked once on both sides, and no money made or lost."""

from collections import Counter
from collections.abc import Iterable, Mapping

from strandline.base.value import Value
from strandline.demo.exactly_once.bank import OPENING, Booking, Transfer, bookings

Place = tuple[int, int]  # partition, offset


class Count(Value, frozen=True):
    transfers: int
    once: int  # transfers with one debit and one credit, and nothing else
    twice: int  # transfers with a debit or a credit more than once
    one_sided: int  # transfers with more debits than credits, or fewer
    missing: int  # transfers without any booking
    strange: int  # bookings of no transfer, of another account or of another amount
    bookings: int
    before: int  # the sum of all accounts
    after: int

    @property
    def holds(self) -> bool:
        return self.once == self.transfers and not self.strange and self.before == self.after


def count(transfers: Iterable[Transfer], booked: Iterable[Booking], accounts: int) -> Count:
    """Hold the bookings that were read against the transfers that were to be made."""
    found = Counter((booking.transfer, booking.account, booking.amount) for booking in booked)
    total, moved = found.total(), sum(amount * times for (_, _, amount), times in found.items())
    numbers = once = twice = one_sided = missing = 0
    for transfer in transfers:
        debit, credit = bookings(transfer, 0)
        paid, received = (found.pop((b.transfer, b.account, b.amount), 0) for b in (debit, credit))
        numbers += 1
        once += paid == received == 1
        twice += max(paid, received) > 1
        one_sided += paid != received
        missing += paid == received == 0
    before = accounts * OPENING
    return Count(numbers, once, twice, one_sided, missing, found.total(), total, before, before + moved)


def taken_back(seen: Mapping[Place, Booking], found: Mapping[Place, Booking]) -> int:
    """How many bookings a reader saw while the loop ran that are not there in the end, or are others."""
    return sum(found.get(place) != booking for place, booking in seen.items())
