"""What must hold. Each law says what is wrong, or None.

The brokers' part is what they are; the laws know besides whose transaction everything belongs to, by the ghosts of
`state`.
"""

from strandline.sim.model.transactions.partition_logs import ABORTED, COMMITTED, OPEN, PartitionLog
from strandline.sim.model.transactions.requests import Answer, Asked, Producer, Tag
from strandline.sim.model.transactions.state import Client, Decision, Marking, State
from strandline.txn.states import COMPLETE, DECIDED
from strandline.txn.states import State as Phase
from strandline.txn.transaction import Transaction

END_OF = {Phase.PREPARE_COMMIT: Phase.COMPLETE_COMMIT, Phase.PREPARE_ABORT: Phase.COMPLETE_ABORT}


def named(tag: Tag | None) -> str:
    return "a transaction of nobody" if tag is None else f"transaction {tag[1]} of client {tag[0] + 1}"


# --- records of __transaction_state, when they are committed


def why_not_following(state: State, new: Transaction) -> str | None:
    """No decision changes, and epochs never go back."""
    old = state.committed
    if old is None:
        return None
    if new == old:
        return None
    if old.state in DECIDED and new.state is not END_OF[old.state]:
        return f"{old.state.named} is committed, and {new.state.named} follows"
    if new.state in COMPLETE and new.state is not END_OF.get(old.state):
        return f"{new.state.named} follows {old.state.named}"
    if new.producer_id == old.producer_id:
        return f"producer epoch {old.epoch} is followed by {new.epoch}" if new.epoch < old.epoch else None
    is_used = any(producer_id == new.producer_id for producer_id, _ in state.proved[:-1])
    given = old.goes_on[0], old.next_producer_id
    return f"producer id {new.producer_id} was in use before" if is_used and new.producer_id not in given else None


def why_not_begun(state: State, tag: Tag | None) -> str | None:
    """Nothing late opens a transaction."""
    if tag is None:
        return "a transaction begins with an epoch that no client was given"
    if state.decision_of(tag) is not None:
        return f"a late request opens {named(tag)} again, which was decided"
    return None


def why_not_decided(state: State, decision: Decision) -> str | None:
    """A decision is of one transaction, of all of it, and the client's own if it is a commit."""
    tag = decision.tag
    if tag is None:
        return f"a commit of {named(None)}" if decision.commits else None
    if state.decision_of(tag) is not None:
        return f"{named(tag)} is decided twice"
    if decision.commits and tag not in state.wanted:
        return f"{named(tag)} is committed, and its client did not ask for that"
    for partition, log in enumerate(state.logs):
        if partition not in decision.partitions and any(record.tag == tag for record in log.open):
            return f"partition {partition} has records of {named(tag)}, and is not in its decision"
    return None


def why_not_complete(state: State) -> str | None:
    """All partitions have their markers before the transaction is complete."""
    decision = state.decisions[-1]
    for partition in decision.partitions:
        if any(record.tag == decision.tag for record in state.logs[partition].open):
            return f"{named(decision.tag)} is complete, and open in partition {partition}"
    return None


# --- markers


def why_no_marker(marking: Marking | None) -> str | None:
    return None if marking is not None else "a marker is sent, and no committed decision says so"


def why_not_marked(state: State, marking: Marking, old: PartitionLog, new: PartitionLog) -> str | None:
    """A marker ends its own transaction, and all partitions of it end in the same way."""
    for before, after in zip(old.records, new.records, strict=True):
        if before.fate == after.fate:
            continue
        if before.tag != marking.tag:
            return f"a marker of {named(marking.tag)} ends {named(before.tag)}"
        fates = {record.fate for log in (*state.logs, new) for record in log.records if record.tag == before.tag}
        if {ABORTED, COMMITTED} <= fates:
            return f"{named(before.tag)} is committed in one partition, and aborted in another"
    return why_epochs_back(old, new)


def why_epochs_back(old: PartitionLog, new: PartitionLog) -> str | None:
    """Of producers and coordinators, in a partition."""
    known = {producer_id: (epoch, coordinator) for producer_id, epoch, coordinator in new.newest}
    for producer_id, epoch, coordinator in old.newest:
        if known[producer_id][0] < epoch:
            return f"producer epoch {epoch} is followed by {known[producer_id][0]} in a partition"
        if known[producer_id][1] < coordinator:
            return f"coordinator epoch {coordinator} is followed by {known[producer_id][1]} in a partition"
    return None


# --- records


def why_not_appended(state: State, asked: Asked, old: PartitionLog, new: PartitionLog) -> str | None:
    """Nothing late joins a transaction or opens one: whoever ends it must know of this partition."""
    tag, partition = asked.tag, asked.partition
    for log in (*state.logs, new):
        for record in log.open:
            if record.tag != tag:
                return f"{named(tag)} and {named(record.tag)} are open at once"
    decision = state.decision_of(tag)
    if decision is not None:
        if partition in decision.marked or partition not in decision.partitions:
            return f"partition {partition} has a record of {named(tag)}, which is over"
    elif not is_known(state, tag, partition):
        return f"partition {partition} has a record of {named(tag)}, and the coordinator does not know of it"
    return why_epochs_back(old, new)


def is_known(state: State, tag: Tag, partition: int) -> bool:
    current = state.committed
    if current is None or current.state is not Phase.ONGOING or state.ongoing != tag:
        return False
    return partition in [at.partition for at in current.partitions]


# --- answers


def why_not_given(state: State, client: int, producer: Producer) -> str | None:
    """Each epoch is one client's, and a committed record proves it."""
    if producer not in state.proved:
        return f"client {client + 1} is given epoch {producer[1]}, and no committed record says so"
    for given, tag in state.owners:
        if given == producer and tag[0] != client:
            return f"client {client + 1} is given epoch {producer[1]} of client {tag[0] + 1}"
        if tag[0] == client and given[0] == producer[0] and given[1] > producer[1]:
            return f"client {client + 1} is given epoch {producer[1]}, and had epoch {given[1]} before"
    return None


def why_not_ended(state: State, client: Client, asked: Asked, answer: Answer) -> str | None:
    """What a client is told was decided, and is never decided otherwise."""
    tag = asked.tag if client.kept is None else client.kept
    decision = state.decision_of(tag)
    what = "commit" if asked.commits else "abort"
    if decision is None:
        is_open = any(record.tag == tag and record.fate == OPEN for log in state.logs for record in log.records)
        is_wrong = asked.commits or is_open
        return f"the {what} of {named(tag)} is acknowledged, and not decided" if is_wrong else None
    if decision.commits != asked.commits:
        return f"the {what} of {named(tag)} is acknowledged, and the opposite decided"
    producer_id, epoch = answer.producer
    if producer_id == decision.producer[0] and epoch != decision.producer[1]:
        return f"{named(tag)} is ended with epoch {decision.producer[1]}, and once more with {epoch}"
    return None
