"""A state of the model: the log of `__transaction_state`, coordinators, partition logs, clients, and what is on its
way.

Besides these a state has ghosts, of which no broker knows: which client was given an epoch, what a client wants of its
transaction, and which decisions were committed.
"""

from typing import NamedTuple

from strandline.sim.model.transactions.coordinators import Coordinator
from strandline.sim.model.transactions.machine import Sent
from strandline.sim.model.transactions.partition_logs import PartitionLog
from strandline.sim.model.transactions.requests import NOBODY, Asked, Producer, Tag
from strandline.txn.transaction import Transaction


class Client(NamedTuple):
    producer: Producer = NOBODY  # as it calls itself; NOBODY: it has not started, or was fenced
    transaction: int = 1  # counts its transactions
    has_begun: bool = False
    has_bumped: bool = False  # its InitProducerId with an epoch was counted
    added: int = 0  # partitions that it has added itself, the first ones
    wrote: int = 0  # partitions that have acknowledged its records, the first ones
    sequences: tuple[int, ...] = (0, 0)  # by partition: of its next batch
    has_failed: bool = False  # it can only abort
    is_prepared: bool = False  # it writes no more, and waits for another system's decision (KIP-939)
    kept: Tag | None = None  # whose transaction it has taken over
    number: int = 0  # of copies of its requests
    asked: Asked | None = None  # it waits for the answer


class Marking(NamedTuple):
    """WriteTxnMarkers on its way. Nobody waits for the answer of a late one."""

    sent: Sent
    tag: Tag | None  # of the transaction that it is to end
    is_late: bool = False


class Decision(NamedTuple):
    """What a committed record of PrepareCommit or PrepareAbort says."""

    tag: Tag | None  # None: of a transaction in which nothing was written
    producer: Producer  # of its markers
    commits: bool
    partitions: tuple[int, ...]
    marked: tuple[int, ...] = ()  # the partitions that have its marker


class State(NamedTuple):
    committed: Transaction | None  # the last committed record
    tail: Transaction | None  # a record that the leader has, and that may still be lost
    active: Coordinator
    zombie: Coordinator | None  # one that believes that it leads still
    logs: tuple[PartitionLog, ...]
    clients: tuple[Client, ...]
    late: tuple[Asked, ...]  # copies of requests, whose answers nobody waits for
    markings: tuple[Marking, ...]
    # How many are left
    starts: int
    bumps: int
    transactions: int
    failovers: int
    timeouts: int
    lates: int
    losses: int
    refusals: int
    # Ghosts
    ongoing: Tag | None = None  # whose transaction is, or was last, open for the coordinator
    owners: tuple[tuple[Producer, Tag], ...] = ()  # since which transaction a client has an epoch
    wanted: tuple[Tag, ...] = ()  # of these the commit was asked for
    prepared: tuple[Tag, ...] = ()
    decisions: tuple[Decision, ...] = ()
    proved: tuple[Producer, ...] = ()  # that committed records give to clients

    def decision_of(self, tag: Tag) -> Decision | None:
        return next((one for one in self.decisions if one.tag == tag), None)

    def owner_of(self, producer: Producer) -> Tag | None:
        """Whose transaction one by this epoch is. Ends by transaction.version 1 leave the epoch as it is."""
        found = next((tag for given, tag in reversed(self.owners) if given == producer), None)
        if found is not None and self.clients[found[0]].producer == producer:
            return found[0], self.clients[found[0]].transaction
        return found
