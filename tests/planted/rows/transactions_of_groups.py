"""Bugs of offsets that transactions commit for a group (KIP-98, KIP-447), and of two-phase commits (KIP-939)."""

from tests.planted.changes import ALWAYS, NEVER, SKIP, Gives, Swap
from tests.planted.planted import Planted, table

COPYING, TWO_PHASE = "copying", "two-phase"

TRANSACTIONS_OF_GROUPS: dict[str, Planted] = table(
    Planted(
        name="generation-does-not-fence",
        how=Gives("None"),
        trap="KIP-447",
        harm="a member of an earlier generation commits what it has copied, and another one copies it again",
        seeds=(2, 2),
        workload=COPYING,
    ),
    Planted(
        name="pending-offset-shown-as-stable",
        how=Gives("offsets, None"),
        trap="KIP-447, KAFKA-18575",
        harm="who takes a partition over begins before what an open transaction has copied",
        seeds=(1, 1),
        workload=COPYING,
    ),
    Planted(
        name="aborted-offsets-count",
        how=ALWAYS,
        trap="KIP-98",
        harm="a group skips what nobody has copied",
        seeds=(1, 1),
        workload=COPYING,
    ),
    Planted(
        name="loaded-markers-decide-nothing",
        how=Swap("None", "None and batch.producer_id < 0"),
        trap="KIP-98",
        harm="after a failover the offsets of transactions that are over are pending for ever",
        seeds=(4, 4),
        workload=COPYING,
    ),
    Planted(
        name="pending-offsets-die-with-their-coordinator",
        how=SKIP,
        trap="KIP-98",
        harm="after a failover the marker commits nothing, and the group copies its records again",
        seeds=(3, 3),
        workload=COPYING,
    ),
    Planted(
        name="group-not-told-of-markers",
        how=Gives("then(error)"),
        trap="KIP-98",
        harm="offsets stay pending until the next coordinator reads the log",
        seeds=(1, 1),
        workload=COPYING,
    ),
    Planted(
        name="offsets-outside-their-transaction",
        how=SKIP,
        trap="KIP-890, hanging transactions",
        harm="the transaction's coordinator does not know of the offsets, and never ends them",
        seeds=(1, 1),
        workload=COPYING,
    ),
    Planted(
        name="two-phase-times-out",
        how=NEVER,
        trap="KIP-939",
        harm="a transaction that is prepared is aborted before the other system's decision is carried out",
        seeds=(1, 1),
        workload=TWO_PHASE,
    ),
    Planted(
        name="prepared-not-kept",
        how=Gives("request.keep_prepared_txn and not request.enable2_pc"),
        trap="KIP-939",
        harm="whoever comes to end a prepared transaction aborts it",
        seeds=(1, 1),
        workload=TWO_PHASE,
    ),
)
