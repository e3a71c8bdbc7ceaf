"""Which transactions of the sink are open for too long, what becomes of them, and how they are ended."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from strandline.client.cluster import Cluster
from strandline.client.two_phase import Begun, describe
from strandline_spark.errors import StrandlineError
from strandline_spark.sink.exactly_once.finishing import OPEN
from strandline_spark.sink.exactly_once.journal import Decision, all_decisions
from strandline_spark.sink.exactly_once.listing import open_ids
from strandline_spark.sink.exactly_once.names import parsed
from strandline_spark.sink.exactly_once.settling import settle

Fate = Literal["commit", "abort", "wait"]


class Leftover(NamedTuple):
    """`fate`: decided ones are committed, others aborted; those that are not old enough wait."""

    name: str
    transactional_id: str
    opened_ms: int
    times_out_ms: int  # its coordinator aborts it then
    partitions: tuple[str, ...]
    fate: Fate


class Found(NamedTuple):
    leftovers: list[Leftover]
    undone: list[str]  # writes that are decided, and that nobody has recorded as committed, for long enough
    silent: list[str]  # why some coordinators did not say what they know


def look(cluster: Cluster, names: Iterable[str], before_ms: int) -> Found:
    """What was opened before, of these writes or of all. Raises `KafkaError`."""
    wanted = set(names)
    listed = open_ids(cluster)
    ids = [one for one in listed.ids if (at := parsed(one)) is not None and (not wanted or at.name in wanted)]
    rows = describe(cluster, ids)
    # Decisions are read after the transactions were listed: what was decided in between counts as decided.
    decided = {name: row for name, row in all_decisions(cluster).items() if not wanted or name in wanted}
    leftovers = []
    for one in ids:
        at, row = parsed(one), rows.get(one)
        if at is None or row is None or row.transaction_state != OPEN:
            continue
        opened = row.transaction_start_time_ms
        is_decided = has(decided.get(at.name), Begun(one, row.producer_id, row.producer_epoch))
        places = tuple(f"{topic.topic}-{index}" for topic in row.topics for index in topic.partitions)
        fate: Fate = "wait" if opened > before_ms else "commit" if is_decided else "abort"
        leftovers.append(Leftover(at.name, one, opened, opened + row.transaction_timeout_ms, places, fate))
    undone = sorted(name for name, row in decided.items() if not row.is_done and row.at_ms <= before_ms)
    return Found(leftovers, undone, listed.silent)


def has(decision: Decision | None, begun: Begun) -> bool:
    return decision is not None and not decision.is_done and any(one.begun == begun for one in decision.transactions)


def end_all(cluster: Cluster, found: Found, *, accept_losses: bool = False) -> None:
    """Raises `StrandlineError` for the first write that cannot be settled; the others are."""
    due: dict[str, list[str]] = {name: [] for name in found.undone}
    for one in found.leftovers:
        if one.fate != "wait":
            due.setdefault(one.name, []).append(one.transactional_id)
    failure: StrandlineError | None = None
    for name, ids in sorted(due.items()):
        try:
            settle(cluster, name, ids, accept_losses=accept_losses)
        except StrandlineError as error:
            failure = failure or error
    if failure is not None:
        raise failure
