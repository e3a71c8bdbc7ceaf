"""What nobody is going to commit any more: attempts that did not win, and what a driver that died has left.

What another run has left may belong to a driver that lives on somewhere, and is about to decide. So the transactions
are taken over first, and only then is the journal entered and read:
  - what is decided by then is read here, and committed
  - who decides later has entered later, and has taken the transactions over after that, since a driver enters first:
    then the abort that is tried here is refused. Or it has found them aborted, and decides nothing.
"""

from collections.abc import Iterable
from contextlib import suppress

from strandline.client.cluster import Cluster
from strandline.client.two_phase import abort_by_id, end, take_over
from strandline_spark.sink.exactly_once.finishing import DECIDED_TIMEOUT_MS, finish
from strandline_spark.sink.exactly_once.journal import Fenced, Journal
from strandline_spark.sink.exactly_once.listing import open_ids
from strandline_spark.sink.exactly_once.names import parsed


def settle(cluster: Cluster, name: str, transactional_ids: Iterable[str], *, accept_losses: bool = False) -> set[str]:
    """End what is open under these ids of a write, and finish what is decided about it. Returns the ids that were
    decided. Raises `StrandlineError`, DataLoss unless losses are accepted."""
    taken = take_over(cluster, transactional_ids, DECIDED_TIMEOUT_MS)
    journal = Journal(cluster, name)
    journal.enter()
    last = journal.read()
    decided: set[str] = set()
    if last is not None and not last.is_done:
        decided = {one.transactional_id for one in last.transactions}
        with suppress(Fenced):  # what is decided stays so
            finish(cluster, journal, last, accept_losses=accept_losses)
    undecided = [one.client for at, one in taken.items() if at not in decided and one.begun is not None]
    end(cluster, undecided, commit=False)
    return decided


def sweep(cluster: Cluster, name: str, run: str) -> None:
    """Abort what tasks of this run have left that did not win: attempts that failed, died or were too slow. Nobody
    else decides about a run's transactions, and those that are decided are committed. What earlier runs have left is
    settled. An attempt that begins after this is found with the next version, or times out."""
    mine: list[str] = []
    others: list[str] = []
    for one in open_ids(cluster, name).ids:
        at = parsed(one)
        (mine if at is not None and at.run == run else others).append(one)
    abort_by_id(cluster, mine, DECIDED_TIMEOUT_MS)
    if others:
        settle(cluster, name, others)
