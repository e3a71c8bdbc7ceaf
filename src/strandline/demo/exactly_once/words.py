"""What the demonstration has shown, in words, for the terminal and for the page."""

from strandline.demo.exactly_once.play import ExactlyOnceResult

MARKS = {"kill": ("✗", "bold red"), "back": ("↑", "green"), "ended": ("!", "yellow"), "step": ("·", "bold")}


def facts(outcome: ExactlyOnceResult) -> list[tuple[str, str, str]]:
    """Name, with transactions, without."""
    counts = outcome.with_transactions, outcome.without

    def row(name: str, *values: int) -> tuple[str, str, str]:
        with_transactions, without = (f"{value:,}" for value in values)
        return name, with_transactions, without

    return [
        row("transfers", *(count.transfers for count in counts)),
        row("booked exactly once", *(count.once for count in counts)),
        row("booked twice or more", *(count.twice for count in counts)),
        row("more debits than credits, or fewer", *(count.one_sided for count in counts)),
        row("missing", *(count.missing for count in counts)),
        row("bookings that a read_committed reader gets", *(count.bookings for count in counts)),
        row("bookings that were aborted", outcome.aborted, 0),
        row("money at first", *(count.before for count in counts)),
        row("money in the end", *(count.after for count in counts)),
    ]


def verdict(outcome: ExactlyOnceResult) -> str:
    count, without = outcome.with_transactions, outcome.without
    kills = f"{len(outcome.kills)} kills"
    if not outcome.holds:
        return f"Exactly once is not shown: {why_not(outcome)}."
    text = f"{kills}, and each of {count.transfers:,} transfers is booked exactly once; no money is made or lost."
    if without.holds:
        return f"{text} The loop without transactions was lucky: it is right, too."
    wrong = without.transfers - without.once
    return f"{text} Without transactions {wrong:,} transfers are wrong, {money(without.after - without.before)}."


def money(difference: int) -> str:
    if not difference:
        return "though the sum is right"
    return f"and {abs(difference):,} of money is {'made' if difference > 0 else 'lost'}"


def why_not(outcome: ExactlyOnceResult) -> str:
    count = outcome.with_transactions
    if not count.transfers:
        return "nothing was transferred"
    if not outcome.all_ended:
        return "a transaction is still open"
    if outcome.taken_back:
        return f"{outcome.taken_back:,} bookings were read while the loop ran, and are not there in the end"
    if count.once < count.transfers:
        return (
            f"{count.twice:,} transfers are booked twice, {count.missing:,} are missing, {count.one_sided:,} are uneven"
        )
    return f"{count.strange:,} bookings are of no transfer, {money(count.after - count.before)}"
