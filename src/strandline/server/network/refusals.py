"""Which lines about clients go to the log: one bad client may not fill it.

Of each kind of line an address gets `LINES_MAX` in a span of `SPAN_MS`, and all addresses together `LINES_OF_KIND_MAX`.
The rest is counted, and reported in one line for each address when the span is over. Time is given, so tests need no
clock.

Invariant: every line was either printed or is in a later summary, so that the figures of the log add up.
"""

import logging
from collections import Counter
from collections.abc import Iterator

log = logging.getLogger("strandline")

LINES_MAX = 10
LINES_OF_KIND_MAX = 100
SPAN_MS = 60_000
SUMMARIES_MAX = 20
ADDRESSES_MAX = 1000  # that are counted apart
TEXT_SHOWN = 200  # letters of what a client sent
OTHERS = "other addresses"
CLOSED, REFUSED = "closed connections", "refused connections"  # kinds of lines


class LogLimit:
    def __init__(self) -> None:
        self.since = 0  # when this span began, in ms
        self.printed: Counter[tuple[str, str]] = Counter()  # kind of line and address
        self.printed_of_kind: Counter[str] = Counter()
        self.left_out: Counter[tuple[str, str]] = Counter()
        self.left_out_ever = Counter({CLOSED: 0, REFUSED: 0})  # by kind, since the start

    def may_print(self, kind: str, address: str, now_ms: int) -> bool:
        """Count one line. `kind` in the plural, as the summary has it: "refused connections"."""
        if not self.printed_of_kind:
            self.since = now_ms
        who = (kind, address)
        if self.printed[who] < LINES_MAX and self.printed_of_kind[kind] < LINES_OF_KIND_MAX:
            self.printed[who] += 1
            self.printed_of_kind[kind] += 1
            return True
        if who not in self.left_out and len(self.left_out) >= ADDRESSES_MAX:
            who = (kind, OTHERS)
        self.left_out[who] += 1
        self.left_out_ever[kind] += 1
        return False

    def summaries(self, now_ms: int) -> Iterator[str]:
        """The lines that end a span; none while it lasts."""
        seconds = (now_ms - self.since) // 1000
        if not self.printed_of_kind or now_ms - self.since < SPAN_MS:
            return
        left_out = self.left_out
        self.printed, self.printed_of_kind, self.left_out = Counter(), Counter(), Counter()
        shown = left_out.most_common(SUMMARIES_MAX)
        for (kind, address), count in shown:
            yield f"… and {count:,} more {kind} from {address} in the last {seconds} s"
        rest = left_out.total() - sum(count for _, count in shown)
        if rest:
            yield f"… and {rest:,} more from {len(left_out) - len(shown):,} other addresses in the last {seconds} s"


def printable(text: str, longest: int = TEXT_SHOWN) -> str:
    """What a client sent, for a line of the log: cut, and nothing in it begins a new line or moves a cursor."""
    assert longest > 0
    cut = text if len(text) <= longest else text[:longest] + "…"
    return "".join(letter if letter.isprintable() else "?" for letter in cut)
