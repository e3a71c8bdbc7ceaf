"""What is explored: which transaction.version, how many transactions, and how many faults of each kind."""

from msgspec.structs import replace

from strandline.base.value import Value
from strandline.txn.transaction import EPOCH_LAST


class Setup(Value, frozen=True):
    """Two clients of one transactional id, and two partitions that their transactions write to. Epochs grow with each
    transaction, so the numbers of transactions and of faults are limited. In which order they come is not."""

    version: int = 2  # the finalized level of transaction.version, which both clients know
    two_phase: bool = False  # transactions are prepared, kept by another client, and decided by that (KIP-939)
    starts: int = 2  # InitProducerId, by both clients together
    bumps: int = 0  # InitProducerId of a client that runs, and names its id and epoch (KIP-360)
    transactions: int = 2  # that clients begin, together
    failovers: int = 1  # of the coordinator
    timeouts: int = 1  # of a transaction
    late: int = 0  # requests of clients that are sent again, given up or not answered; a copy may still arrive
    losses: int = 0  # WriteTxnMarkers that are refused, not answered, or arrive once more
    refusals: int = 0  # records of the coordinator that are not written: too few replicas are in sync
    epoch: int = -1  # the producer epoch at first; -1: nobody has used the transactional id yet

    @property
    def is_exhausted(self) -> bool:
        return self.epoch > 0

    @property
    def title(self) -> str:
        kind = ", two-phase commit" if self.two_phase else ""
        return f"transaction.version {self.version}{kind}"

    def limits(self) -> str:
        """One line that says what is in the model, for the header of a report."""
        parts = [
            f"2 clients of one id, {counted(self.starts, 'start', 'starts')}, "
            f"{counted(self.transactions, 'transaction', 'transactions')} in 2 partitions",
            counted(self.failovers, "failover of the coordinator", "failovers of the coordinator"),
            counted(self.timeouts, "timeout", "timeouts"),
            counted(self.late, "late request", "late requests"),
            counted(self.losses, "lost or repeated WriteTxnMarkers", "lost or repeated WriteTxnMarkers"),
            counted(self.bumps, "epoch that a client asks for", "epochs that clients ask for") if self.bumps else "",
            counted(self.refusals, "refused record", "refused records"),
            f"producer epoch {self.epoch} at first" if self.is_exhausted else "",
        ]
        return "; ".join(part for part in parts if part)


def counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}" if number else f"no {one}"


ONE_EACH = Setup(transactions=1)  # a failover and a timeout
IN_A_ROW = Setup(starts=1)  # two transactions of one client

LADDER = (
    replace(ONE_EACH, late=1, timeouts=0),
    ONE_EACH,
    replace(ONE_EACH, late=1, losses=1, failovers=0, timeouts=0),
    replace(IN_A_ROW, late=1, losses=1, failovers=0, timeouts=0),
    replace(IN_A_ROW, transactions=1, failovers=2, timeouts=0),
    replace(ONE_EACH, failovers=0, losses=1, refusals=1),
    replace(ONE_EACH, bumps=1, timeouts=0),
    replace(ONE_EACH, bumps=1, failovers=0, timeouts=0, late=1),
    Setup(epoch=EPOCH_LAST - 1, failovers=0),
    replace(IN_A_ROW, epoch=EPOCH_LAST - 1, timeouts=0),
    replace(ONE_EACH, two_phase=True, timeouts=0),
    replace(ONE_EACH, two_phase=True, starts=3, failovers=0, timeouts=0),
    replace(ONE_EACH, version=1),
    replace(IN_A_ROW, version=1),
    replace(ONE_EACH, version=1, bumps=1, failovers=0),
    Setup(version=1, losses=1, failovers=0, timeouts=0),
)


def ladder(version: int | None = None, *, two_phase: bool | None = None) -> tuple[Setup, ...]:
    """What is explored when nothing else is asked for: each kind of fault with each version, and some together."""
    return tuple(one for one in LADDER if version in (None, one.version) and two_phase in (None, one.two_phase))
