"""Bugs of transactions in logs, their markers and indexes (KIP-98, KIP-890)."""

from tests.planted.planted import Change, Planted, table

STATE = "strandline.log.producers.producer_state"
PRODUCERS = "strandline.log.producers.producers"
LOG = "strandline.log.log"
VERIFYING = "strandline.replica.serving.transactions.verifying"
MARKERS = "strandline.txn.markers"
WORKLOAD, COPYING = "transactions", "copying"

TRANSACTIONS_IN_LOGS: dict[str, Planted] = table(
    Planted(
        name="half-written-decision-obeyed",
        module="strandline.txn.shards",
        old="        return self.log.is_committed(self.topic, partition) and super().is_loadable(partition, now)\n",
        new="        return super().is_loadable(partition, now)\n",
        trap="coordinator failover with a half-written decision",
        harm="a new coordinator writes the markers of a decision that a truncation takes",
        seeds=(8, 8),
        workload=WORKLOAD,
    ),
    Planted(
        name="late-marker-ends-the-next",
        module=PRODUCERS,
        old="        if epoch < producer.epoch or is_late:\n",
        new="        if producer.epoch < 0:\n",
        trap="KIP-890, a late marker after an epoch bump",
        harm="a marker that comes late ends the producer's next transaction",
        seeds=(20000009, 20000013),
        workload=WORKLOAD,
    ),
    Planted(
        name="aborted-index-outlives-truncation",
        module=STATE,
        old="        for segment in self.segments.from_offset(offset) if self.has_aborted else ():\n",
        new="        for segment in ():\n",
        trap=".txnindex after truncation",
        harm="the index names a transaction as aborted whose marker is gone",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
    Planted(
        name="followers-index-nothing-aborted",
        module=LOG,
        old="self.producer_state.ended(self.producers.appended(header, header.base_offset, now, marker=marker))\n",
        new="self.producers.appended(header, header.base_offset, now, marker=marker)\n",
        trap="KIP-98",
        harm="the next leader names no aborted transaction, and its readers deliver aborted records",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
    Planted(
        name="snapshot-without-open-transactions",
        module="strandline.log.producers.producer_snapshot",
        old="producers.transactions.open.get(producer_id, NONE))\n",
        new="NONE)\n",
        trap="KIP-98",
        harm="after a restart readers get records of transactions that are open",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
    Planted(
        name="followers-stable-is-the-high-watermark",
        module="strandline.replica.hosting.follower",
        old="        return self.log.last_stable_offset(self.high_watermark)\n",
        new="        return self.high_watermark\n",
        trap="LSO on followers",
        harm="who reads from a follower gets what is not decided",
        seeds=(1, 1),
        workload=WORKLOAD,
    ),
    Planted(
        name="cut-batches-stay-open",
        module=STATE,
        old="        if self.producers.end_offset > end:\n",
        new="        if self.producers.end_offset < 0:\n",
        trap="KAFKA-5431, transactions after truncation",
        harm="a transaction of which a truncation took all records is open for ever",
        seeds=(7, 7),
        workload=WORKLOAD,
    ),
    Planted(
        name="complete-without-markers",
        module=MARKERS,
        old="        if decision.missing or decision.is_completing or",
        new="        if decision.is_completing or",
        trap="hanging transactions",
        harm="a transaction is called complete while its partitions wait for their markers",
        seeds=(11, 11),
        workload=WORKLOAD,
    ),
    Planted(
        name="newer-epoch-joins-an-open-transaction",
        module=LOG,
        old="        return OUTSIDE_TRANSACTION if header.producer_epoch > ",
        new="        return OUTSIDE_TRANSACTION if header.producer_epoch < 0 and header.producer_epoch > ",
        trap="KIP-890",
        harm="records of the next transaction are before the marker of the last one, and belong to it",
        seeds=(10, 10),
        workload=WORKLOAD,
        also=Change(VERIFYING, " and known is not None and known.epoch == header.producer_epoch\n", "\n"),
    ),
    Planted(
        name="cleaned-above-the-stable-offset",
        module="strandline.replica.storage.cleaning",
        old="cleanable(log, min(role.high_watermark, role.last_stable_offset), now)\n",
        new="cleanable(log, role.high_watermark, now)\n",
        trap="KIP-98",
        harm="an open transaction's record takes the place of one that counts",
        seeds=(1, 3),
        plan="cleaned-above-the-stable-offset.json",
    ),
    Planted(
        name="aborted-record-takes-a-place",
        module="strandline.log.cleaning.decided",
        old="        return at >= 0 and header.base_offset <= spans[at][1]\n",
        new="        return at < -1\n",
        trap="KIP-98",
        harm="the cleaner drops a group's offset for one that was aborted",
        seeds=(5, 5),
        workload=COPYING,
    ),
)
