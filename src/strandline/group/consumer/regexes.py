"""Which topics a regular expression of a subscription names (KIP-848, `SubscribedTopicRegex`): RE2's dialect, by RE2.

As in Kafka, an expression must match a topic's whole name. Internal topics are never among the matches, as with the
default of the clients' `exclude.internal.topics` (Kafka's coordinator has no such rule: `.*` there names
`__consumer_offsets` too).

RE2 needs time in proportion to the names, but with a factor as large as the compiled expression, and the node waits
meanwhile. So expressions have a longest length and a largest program. With less memory than RE2's default it would take
its slow way more often.
"""

from collections.abc import Iterable
from typing import Any

from strandline.base.ids import INTERNAL_TOPICS

PATTERN_MAX = 4096  # bytes of UTF-8
PROGRAM_MAX = 2000  # RE2's instructions; 25 microseconds for each byte of the names in the worst case
MEMORY_MAX = 8 << 20  # bytes, while one expression is in use; RE2's default


class InvalidRegex(ValueError):
    """Its text is RE2's reason, or which limit the expression is above: INVALID_REGULAR_EXPRESSION."""


def resolve(pattern: str, topics: Iterable[str]) -> frozenset[str]:
    """Those of these names that the expression matches. Raises InvalidRegex."""
    import re2  # not before a group needs it

    regex = compiled(pattern)
    try:
        return frozenset(
            name for name in topics if name not in INTERNAL_TOPICS and regex.fullmatch(name.encode()) is not None
        )
    finally:
        re2.purge()  # it would keep the last 128 expressions, each with its memory


def compiled(pattern: str) -> Any:
    import re2

    text = pattern.encode()
    if len(text) > PATTERN_MAX:
        raise InvalidRegex(f"it is longer than {PATTERN_MAX} bytes")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_MAX
    try:
        regex = re2.compile(text, options)
    except re2.error as error:
        reason: bytes | str = error.args[0]
        raise InvalidRegex(reason.decode(errors="replace") if isinstance(reason, bytes) else reason) from None
    if regex.programsize > PROGRAM_MAX:
        re2.purge()
        raise InvalidRegex(f"it is too large, {regex.programsize} instructions of at most {PROGRAM_MAX}")
    return regex
