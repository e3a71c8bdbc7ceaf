"""Commit what is decided, as often as it takes: by the driver that has decided it, or by whoever comes later."""

from typing import Any

from msgspec.structs import replace

from strandline.base.errors import ErrorCode
from strandline.client.cluster import Cluster
from strandline.client.two_phase import describe, end, take_over
from strandline.txn.states import State
from strandline_spark.errors import DataLoss
from strandline_spark.sink.exactly_once.journal import Decided, Decision, Journal

DECIDED_TIMEOUT_MS = 7 * 86_400_000  # a decided transaction that nobody commits is given up then
OPEN = State.ONGOING.named
GONE_ON = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


def finish(cluster: Cluster, journal: Journal, decision: Decision, *, accept_losses: bool = False) -> Decision:
    """The same decision, all of which is committed now, as the journal has it. Raises DataLoss if some of it was
    aborted by time, unless losses are accepted; `Fenced` if another driver has entered: that one finishes it too."""
    lost = uncommitted(cluster, decision)
    if lost and not accept_losses:
        raise DataLoss(
            f"version {decision.version} of {decision.name} was decided, and {len(lost)} of its"
            f" {len(decision.transactions)} transactions were aborted before they were committed:"
            f" {', '.join(lost[:3])}{', …' if len(lost) > 3 else ''}",
            "its rows are missing: decided transactions are given up after seven days. `strandline pipeline settle"
            f" --name {decision.name} --accept-losses` lets the write go on without them",
        )
    done = replace(decision, is_done=True)
    journal.write(done)
    return done


def uncommitted(cluster: Cluster, decision: Decision) -> list[str]:
    """Commit all of it; the ids of what could not be."""
    codes = end(cluster, [one.client for one in decision.transactions], commit=True)
    fenced = [one for one in decision.transactions if codes[one.transactional_id] in GONE_ON]
    lost = [name for name, code in codes.items() if code and code not in GONE_ON]
    if fenced:
        # Somebody took it over and died, or the run went on with the next version, which it does after this one.
        rows = describe(cluster, [one.transactional_id for one in fenced])
        still = [one for one in fenced if is_open(rows.get(one.transactional_id), one)]
        taken = take_over(cluster, [one.transactional_id for one in still], DECIDED_TIMEOUT_MS)
        again = [taken[one.transactional_id].client for one in still if taken[one.transactional_id].begun == one.begun]
        lost += [name for name, code in end(cluster, again, commit=True).items() if code]
    return lost


def is_open(row: Any, one: Decided) -> bool:
    if row is None or row.transaction_state != OPEN:
        return False
    return (row.producer_id, row.producer_epoch) == one.begun.producer
