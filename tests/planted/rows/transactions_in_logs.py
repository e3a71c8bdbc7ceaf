"""Bugs of transactions in logs, their markers and indexes (KIP-98, KIP-890)."""

from tests.planted.changes import ALWAYS, NEVER, Gives, Swap, Without
from tests.planted.planted import Change, Planted, table

WORKLOAD = "transactions"

TRANSACTIONS_IN_LOGS: dict[str, Planted] = table(
    Planted(
        name="half-written-decision-obeyed",
        guard="new-coordinator-loads-what-may-be-lost",
        how=ALWAYS,
        trap="coordinator failover with a half-written decision",
        harm="a new coordinator writes the markers of a decision that a truncation takes",
        seeds=(8, 8),
        workload=WORKLOAD,
    ),
    Planted(
        name="late-marker-ends-the-next",
        guard="late-marker-of-the-same-epoch",
        how=Gives("producer.epoch < 0"),
        trap="KIP-890, a late marker after an epoch bump",
        harm="a marker that comes late ends the producer's next transaction",
        seeds=(20000009, 20000013),
        workload=WORKLOAD,
    ),
    Planted(
        name="aborted-index-outlives-truncation",
        how=NEVER,
        trap=".txnindex after truncation",
        harm="the index names a transaction as aborted whose marker is gone",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
    Planted(
        name="followers-index-nothing-aborted",
        guard="producers-forgotten-by-a-new-leader",
        how=Gives("self.producers.appended(header, header.base_offset, now, marker=marker)"),
        trap="KIP-98",
        harm="the next leader names no aborted transaction, and its readers deliver aborted records",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
    Planted(
        name="snapshot-without-open-transactions",
        how=Swap("producers.transactions.open.get(producer_id, NONE)", "NONE"),
        trap="KIP-98",
        harm="after a restart readers get records of transactions that are open",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
    Planted(
        name="followers-stable-is-the-high-watermark",
        how=Gives("self.high_watermark"),
        trap="LSO on followers",
        harm="who reads from a follower gets what is not decided",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
    Planted(
        name="cut-batches-stay-open",
        how=Swap("> end", "< 0"),
        trap="KAFKA-5431, transactions after truncation",
        harm="a transaction of which a truncation took all records is open for ever",
        seeds=(7, 7),
        workload=WORKLOAD,
    ),
    Planted(
        name="complete-without-markers",
        guard="complete-before-the-markers",
        how=Without("missing"),
        trap="hanging transactions",
        harm="a transaction is called complete while its partitions wait for their markers",
        seeds=(11, 11),
        workload=WORKLOAD,
    ),
    Planted(
        name="newer-epoch-joins-an-open-transaction",
        how=Swap(">", "< 0 and header.producer_epoch >"),
        trap="KIP-890",
        harm="records of the next transaction are before the marker of the last one, and belong to it",
        seeds=(22, 22),
        workload=WORKLOAD,
        also=Change(
            "newer-epoch-is-not-asked-for",
            Swap("and known is not None and known.epoch == header.producer_epoch", ""),
        ),
    ),
    Planted(
        name="cleaned-above-the-stable-offset",
        how=Gives("cleanable(log, role.high_watermark, now)"),
        trap="KIP-98",
        harm="an open transaction's record takes the place of one that counts",
        seeds=(9, 9),
        plan="cleaned-above-the-stable-offset.json",
    ),
    Planted(
        name="aborted-record-takes-a-place",
        how=Gives("at < -1"),
        trap="KIP-98",
        harm="the cleaner drops a group's offset for one that was aborted",
        seeds=(1, 1),
        plan="cleaned-above-the-stable-offset.json",
    ),
)
