"""What the loss ledger says of a partition that is explained: how many entries, and who was withdrawn last, and why."""

from collections.abc import Iterable

from strandline.base.ids import OFFSETS_TOPIC, TRANSACTION_TOPIC
from strandline.base.value import Value
from strandline.client.admin.loss_acknowledgement import acknowledgement
from strandline.client.admin.loss_ledger import WITHDRAWN, Entry, Ledger, entries
from strandline.client.admin.partitions import Place
from strandline.diagnosis.loss_words import range_words, when
from strandline.wire.messages.own.describe_losses import Loss

# What a record of an internal topic was about: its loss is more than a record that is missing (docs/losses.md).
MEANINGS = {
    TRANSACTION_TOPIC: (
        "a lost record may be a decision: then a transaction that was committed is aborted in the partitions without"
        " its marker, and is not atomic",
        "or it may be a producer's epoch, or a partition of a transaction: then a producer that was fenced may write"
        " again, and a transaction may hang: `strandline transactions find-hanging`",
    ),
    OFFSETS_TOPIC: (
        "a lost record may be an offset: then its group reads again what it has read, also if the offset was committed"
        " in a transaction whose results are there",
    ),
}


class LedgerEntries(Value, frozen=True):
    """What is written of one partition."""

    open: int = 0  # entries that nobody has acknowledged
    acknowledged: int = 0
    withdrawn: tuple[Loss, ...] = ()  # of each replica the last withdrawal, acknowledged or not

    @property
    def words(self) -> str:
        """Empty if there is nothing."""
        if not self.acknowledged:
            return counted(self.open) if self.open else ""
        seen = f"{self.acknowledged} acknowledged"
        return f"{counted(self.open)}, and {seen}" if self.open else f"no entry but {seen}"


NOTHING_WRITTEN = LedgerEntries()


def meaning(topic: str) -> tuple[str, ...]:
    """What a lost record of this topic means beside that it is missing."""
    return MEANINGS.get(topic, ())


def counted(count: int) -> str:
    return f"{count} entr{'y' if count == 1 else 'ies'}"


def written(ledger: Ledger) -> dict[Place, LedgerEntries]:
    found: dict[Place, list[Entry]] = {}
    for entry in entries(ledger.losses):
        found.setdefault(Place(entry.losses[0].topic, entry.losses[0].partition), []).append(entry)
    return {at: of_one(rows, ledger) for at, rows in found.items()}


def of_one(rows: Iterable[Entry], ledger: Ledger) -> LedgerEntries:
    rows = list(rows)
    seen = sum(acknowledgement(entry, ledger.acknowledged) is not None for entry in rows)
    last: dict[int, Loss] = {}
    for loss in (loss for entry in rows for loss in entry.losses if loss.where == WITHDRAWN):
        if loss.replica not in last or last[loss.replica].time_ms <= loss.time_ms:
            last[loss.replica] = loss
    return LedgerEntries(len(rows) - seen, seen, tuple(last[node] for node in sorted(last)))


def withdrawal_words(loss: Loss) -> str:
    what = range_words(loss.start, loss.end, loss.certainty)
    return f"replica {loss.replica} left ISR and ELR at {when(loss.time_ms)}: {loss.cause}; {what}"
