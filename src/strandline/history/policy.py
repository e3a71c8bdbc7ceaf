"""What is tolerated, and why. Everything else is a violation.

The checks know nothing of configurations and faults; this small table does. Each row names one reason.
"""

from collections.abc import Callable

from strandline.base.value import Value
from strandline.history.anomaly import Anomaly
from strandline.history.operation import Key, Operation


class Facts(Value, frozen=True):
    """What is known of a run beside its history."""

    exceeded: tuple[Key, ...] = ()  # the faults took more of these than their configuration promises to survive
    gone: tuple[Key, ...] = ()  # topics that were deleted
    is_duplicating: bool = False  # the network may deliver a request again, to whom it may be welcome by then
    is_subscribed: bool = False  # groups hand partitions over: processes do not poll in one order
    exceeded_ms: dict[Key, int] = {}  # noqa: RUF012  # a Value copies it; as `exceeded`, and since when
    # What the loss ledger says: ranges of offsets, half open; −1: without an end. None: it was not asked.
    ledger: dict[Key, tuple[tuple[int, int], ...]] | None = None


class Tolerance(Value, frozen=True):
    names: tuple[str, ...]
    why: str
    applies: Callable[[Anomaly, Facts], bool]


def is_exceeded(anomaly: Anomaly, facts: Facts) -> bool:
    """What was proved before the faults were too many has another cause."""
    since = facts.exceeded_ms.get(anomaly.key)
    return anomaly.key in facts.exceeded if since is None else anomaly.proved_ms >= since


def is_on_record(anomaly: Anomaly, facts: Facts) -> bool:
    """Losses that nobody could prevent must at least be in the ledger, every offset of them."""
    if facts.ledger is None:
        return True
    ranges = facts.ledger.get(anomaly.key, ())

    def is_named(offset: int) -> bool:
        return any(start <= offset and (end < 0 or offset < end) for start, end in ranges)

    return all(is_named(offset) for offset in anomaly.offsets)


def every_writer(anomaly: Anomaly, holds: Callable[[Operation], bool]) -> bool:
    return bool(anomaly.writers) and all(holds(writer) for writer in anomaly.writers)


def is_about_weak_writes(anomaly: Anomaly) -> bool:
    """Two values that clash, of which at most one was acknowledged with acks=all: but two such have no excuse, whatever
    else stands beside them."""
    strong = [
        write.value
        for writer in anomaly.writers
        if writer.acks == -1
        for write in writer.writes
        if write.key == anomaly.key and write.value in anomaly.values
    ]
    return len(strong) < 2 and any(writer.acks != -1 for writer in anomaly.writers)


OTHER_LOSSES = (
    "unseen",
    "duplicate",
    "inconsistent-offsets",
    "poll-skip",
    "int-poll-skip",
    "nonmonotonic-poll",
    "nonmonotonic-send",
    "G0",
    "G1a",
    "G1b",
)
TOLERANCES = (
    Tolerance(
        ("lost-write",),
        "more failed than the configuration promises to survive, and the loss ledger says what was lost",
        lambda a, facts: is_exceeded(a, facts) and is_on_record(a, facts),
    ),
    Tolerance(OTHER_LOSSES, "more failed than the configuration promises to survive", is_exceeded),
    Tolerance(("unseen", "lost-write"), "the topic was deleted", lambda a, facts: a.key in facts.gone),
    Tolerance(
        ("lost-write", "unseen", "inconsistent-offsets", "nonmonotonic-send"),
        "acks=0 and acks=1 promise nothing that outlives the leader, until somebody has read it",
        lambda a, _: not a.was_committed and is_about_weak_writes(a),
    ),
    Tolerance(
        ("duplicate",),
        "a producer that is not idempotent sends again what had no answer",
        lambda a, _: every_writer(a, lambda writer: not writer.is_idempotent),
    ),
    Tolerance(("int-send-skip",), "Kafka lets the batches of several producers interleave", lambda a, facts: True),
    Tolerance(
        ("G1a",),
        "a request that was refused came a second time",
        lambda a, facts: facts.is_duplicating,
    ),
    Tolerance(
        ("G1a", "precommitted-read"),
        "read_uncommitted shows what transactions have not committed, or never will",
        lambda a, _: not a.was_committed and every_writer(a, lambda writer: bool(writer.transactional_id)),
    ),
    Tolerance(
        ("poll-skip", "nonmonotonic-poll"),
        "a group handed the partition over",
        lambda a, facts: facts.is_subscribed,
    ),
)


def why_tolerated(anomaly: Anomaly, facts: Facts) -> str | None:
    """None: it is a violation."""
    for row in TOLERANCES:
        if anomaly.name in row.names and row.applies(anomaly, facts):
            return row.why
    return None
