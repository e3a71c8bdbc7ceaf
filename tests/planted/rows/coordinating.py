"""Bugs of the transaction coordinator, and of logs that take its markers, which the model of transactions finds."""

from tests.planted.changes import ALWAYS, SKIP, Gives, Instead, Swap, Without
from tests.planted.planted import MODEL, Change, Planted, table

COORDINATING: dict[str, Planted] = table(
    Planted(
        name="appended-counts-as-committed",
        how=Instead(
            "early, done = done(ErrorCode.NONE, 0, now), lambda *_: []\n"
            "return early + self.log.append_internal(TRANSACTION_TOPIC, shard.partition, batch, now, done)"
        ),
        trap="KIP-98",
        harm="a coordinator acts on a record that is lost with it",
        found_by=MODEL,
    ),
    Planted(
        name="new-coordinator-loads-what-may-be-lost",
        how=ALWAYS,
        trap="KIP-98",
        harm="a new coordinator carries out a decision that the next one does not know",
        found_by=MODEL,
    ),
    Planted(
        name="new-coordinator-forgets-that-it-is-decided",
        how=Instead(
            "if decoded.transaction_status == 2:\n"
            "    decoded = __import__('msgspec').structs.replace(decoded, transaction_status=1)\n"
            "..."
        ),
        trap="KIP-98",
        harm="a commit that was acknowledged is aborted by its timeout, because the coordinator has moved",
        found_by=MODEL,
    ),
    Planted(
        name="new-coordinator-turns-a-commit",
        guard="new-coordinator-forgets-that-it-is-decided",
        how=Instead(
            "if decoded.transaction_status == 2:\n"
            "    decoded = __import__('msgspec').structs.replace(decoded, transaction_status=3)\n"
            "..."
        ),
        trap="KIP-98",
        harm="a transaction is committed in the partitions before a failover, and aborted in those after it",
        found_by=MODEL,
    ),
    Planted(
        name="new-producer-keeps-the-epoch",
        how=Swap("+ 1", ""),
        trap="KIP-98",
        harm="the producer of before is not fenced, and writes into the transactions of its successor",
        found_by=MODEL,
    ),
    Planted(
        name="fenced-producer-gets-the-next-epoch",
        how=ALWAYS,
        trap="KIP-360",
        harm="a producer that was fenced gets the epoch of its successor, and both go on",
        found_by=MODEL,
    ),
    Planted(
        name="second-partition-replaces-the-first",
        how=Gives("tuple(sorted({*added}))"),
        trap="KIP-98",
        harm="a partition with records of the transaction never gets its marker",
        found_by=MODEL,
    ),
    Planted(
        name="complete-before-the-markers",
        how=Without("missing"),
        trap="KIP-98",
        harm="the next transaction begins while the one before is open in a partition",
        found_by=MODEL,
    ),
    Planted(
        name="refused-marker-is-not-sent-again",
        how=SKIP,
        trap="hanging transactions",
        harm="a partition whose leader moved never gets its marker, until the coordinator moves",
        found_by=MODEL,
    ),
    Planted(
        name="late-marker-of-the-same-epoch",
        how=Without("is_late"),
        trap="KIP-890, KIP-1228",
        harm="a marker that arrives twice ends the next transaction of its producer",
        found_by=MODEL,
    ),
    Planted(
        name="marker-of-an-older-coordinator",
        how=Swap("producer.coordinator_epoch", "-1"),
        trap="KIP-98",
        harm="a coordinator that was replaced ends a later transaction",
        found_by=MODEL,
    ),
    Planted(
        name="older-coordinator-confirms-partitions",
        how=Without("BUMPS_EPOCHS"),
        trap="an answer needs its record",
        harm="before transaction.version 2 a partition has records of a transaction that its coordinator does not know",
        found_by=MODEL,
    ),
    Planted(
        name="older-coordinator-confirms-an-end",
        how=Without("BUMPS_EPOCHS"),
        trap="an answer needs its record",
        harm="before transaction.version 2 a commit is acknowledged, and aborted",
        found_by=MODEL,
    ),
    Planted(
        name="kept-without-a-new-epoch",
        how=Swap("+ 1", ""),
        trap="KIP-939",
        harm="two clients may decide one prepared transaction, and differ",
        found_by=MODEL,
    ),
    Planted(
        name="sent-again-opens-the-end-again",
        how=Swap("is_again", "is_again and request.committed"),
        trap="KIP-890",
        harm="a producer whose abort was done and not answered is fenced, or ends what it has not begun",
        found_by=MODEL,
        also=Change("zombie-ends-transaction", Swap("client", "client and not is_again")),
    ),
)
