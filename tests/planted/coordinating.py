"""Bugs of the transaction coordinator, and of logs that take its markers, which the model of transactions finds."""

from tests.planted.planted import MODEL, Change, Planted, table

ADDING = "strandline.txn.adding"
ENDING = "strandline.txn.ending"
MARKERS = "strandline.txn.markers"
PRODUCERS = "strandline.log.producers.producers"
SHARD = "strandline.txn.shard"
SHARDS = "strandline.txn.shards"
TRANSACTION = "strandline.txn.transaction"
LOADED = "                    self.entries[transactional_id] = Entry(restored(transactional_id, value))\n"


def loaded_as(decided: int, status: int) -> str:
    """A new coordinator takes one state of a transaction for another."""
    return (
        f"                    if value.transaction_status == {decided}:\n"
        f"                        value = __import__('msgspec').structs.replace(value, transaction_status={status})\n"
        + LOADED
    )


COORDINATING: dict[str, Planted] = table(
    Planted(
        name="appended-counts-as-committed",
        module=SHARDS,
        old="        return self.log.append_internal(TRANSACTION_TOPIC, shard.partition, batch, now, done)\n",
        new="        early, done = done(ErrorCode.NONE, 0, now), lambda *_: []\n"
        "        return early + self.log.append_internal(TRANSACTION_TOPIC, shard.partition, batch, now, done)\n",
        trap="KIP-98",
        harm="a coordinator acts on a record that is lost with it",
        found_by=MODEL,
    ),
    Planted(
        name="new-coordinator-loads-what-may-be-lost",
        module=SHARDS,
        old="        return self.log.is_committed(self.topic, partition) and super().is_loadable(partition, now)\n",
        new="        return super().is_loadable(partition, now)\n",
        trap="KIP-98",
        harm="a new coordinator carries out a decision that the next one does not know",
        found_by=MODEL,
    ),
    Planted(
        name="new-coordinator-forgets-that-it-is-decided",
        module=SHARD,
        old=LOADED,
        new=loaded_as(2, 1),
        trap="KIP-98",
        harm="a commit that was acknowledged is aborted by its timeout, because the coordinator has moved",
        found_by=MODEL,
    ),
    Planted(
        name="new-coordinator-turns-a-commit",
        module=SHARD,
        old=LOADED,
        new=loaded_as(2, 3),
        trap="KIP-98",
        harm="a transaction is committed in the partitions before a failover, and aborted in those after it",
        found_by=MODEL,
    ),
    Planted(
        name="new-producer-keeps-the-epoch",
        module=TRANSACTION,
        old="            State.EMPTY, now, epoch=self.epoch + 1, last_epoch=last,",
        new="            State.EMPTY, now, epoch=self.epoch, last_epoch=last,",
        trap="KIP-98",
        harm="the producer of before is not fenced, and writes into the transactions of its successor",
        found_by=MODEL,
    ),
    Planted(
        name="fenced-producer-gets-the-next-epoch",
        module="strandline.txn.initializing",
        old="    return None if is_again or is_before_end(current, named) else ErrorCode.PRODUCER_FENCED\n",
        new="    return None\n",
        trap="KIP-360",
        harm="a producer that was fenced gets the epoch of its successor, and both go on",
        found_by=MODEL,
    ),
    Planted(
        name="second-partition-replaces-the-first",
        module=TRANSACTION,
        old="        partitions = tuple(sorted({*(() if is_first else self.partitions), *added}))\n",
        new="        partitions = tuple(sorted({*added}))\n",
        trap="KIP-98",
        harm="a partition with records of the transaction never gets its marker",
        found_by=MODEL,
    ),
    Planted(
        name="complete-before-the-markers",
        module=MARKERS,
        old="        if decision.missing or decision.is_completing or",
        new="        if decision.is_completing or",
        trap="KIP-98",
        harm="the next transaction begins while the one before is open in a partition",
        found_by=MODEL,
    ),
    Planted(
        name="refused-marker-is-not-sent-again",
        module=MARKERS,
        old="                self.pausing[sent.node] = None\n                self.try_again(now)\n",
        new="                self.pausing[sent.node] = None\n",
        trap="hanging transactions",
        harm="a partition whose leader moved never gets its marker, until the coordinator moves",
        found_by=MODEL,
    ),
    Planted(
        name="late-marker-of-the-same-epoch",
        module=PRODUCERS,
        old="        if epoch < producer.epoch or is_late:\n",
        new="        if epoch < producer.epoch:\n",
        trap="KIP-890, KIP-1228",
        harm="a marker that arrives twice ends the next transaction of its producer",
        found_by=MODEL,
    ),
    Planted(
        name="marker-of-an-older-coordinator",
        module=PRODUCERS,
        old="        if marker.coordinator_epoch < producer.coordinator_epoch:\n",
        new="        if marker.coordinator_epoch < -1:\n",
        trap="KIP-98",
        harm="a coordinator that was replaced ends a later transaction",
        found_by=MODEL,
    ),
    Planted(
        name="older-coordinator-confirms-partitions",
        module=ADDING,
        old="        if has_all and version >= BUMPS_EPOCHS:\n",
        new="        if has_all:\n",
        trap="an answer needs its record",
        harm="before transaction.version 2 a partition has records of a transaction that its coordinator does not know",
        found_by=MODEL,
    ),
    Planted(
        name="older-coordinator-confirms-an-end",
        module=ENDING,
        old="        if verdict is not None and version >= BUMPS_EPOCHS:\n",
        new="        if verdict is not None:\n",
        trap="an answer needs its record",
        harm="before transaction.version 2 a commit is acknowledged, and aborted",
        found_by=MODEL,
    ),
    Planted(
        name="kept-without-a-new-epoch",
        module=TRANSACTION,
        old="        return self.to(State.ONGOING, now, next_producer_id=producer_id, next_epoch=epoch + 1)\n",
        new="        return self.to(State.ONGOING, now, next_producer_id=producer_id, next_epoch=epoch)\n",
        trap="KIP-939",
        harm="two clients may decide one prepared transaction, and differ",
        found_by=MODEL,
    ),
    Planted(
        name="sent-again-opens-the-end-again",
        module=ENDING,
        old="    if current.state in COMPLETE and is_again:\n",
        new="    if current.state in COMPLETE and is_again and request.committed:\n",
        trap="KIP-890",
        harm="a producer whose abort was done and not answered is fenced, or ends what it has not begun",
        found_by=MODEL,
        also=Change(ENDING, "    if named != current.client:\n", "    if named != current.client and not is_again:\n"),
    ),
)
