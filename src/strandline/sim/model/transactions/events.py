"""What may happen in a state, and what follows from it.

Clients take one step at a time, in any order between them. Faults happen as long as some are left (`Setup`), all else
at any time. These leave nothing out that could make a difference:
  - an answer reaches its client at once, or is lost; a client that is slow to go on is like a request that is slow;
  - so a client that waits for nothing sends its next request before anything else happens, and one that stops has a
    request that never arrives. Only in two-phase commit it may go on by what others have prepared meanwhile;
  - a request counts for the limits when it arrives;
  - both clients are alike: the first of them starts first.
"""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from strandline.base.errors import ErrorCode
from strandline.sim.model.transactions.coordinators import Coordinator
from strandline.sim.model.transactions.machine import (
    COMMITTED,
    RESIGN,
    TRANSACTION,
    Due,
    Ends,
    Load,
    Marked,
)
from strandline.sim.model.transactions.requests import NOBODY, Asked, Kind, Stage
from strandline.sim.model.transactions.setup import Setup
from strandline.sim.model.transactions.state import Client, Marking, State
from strandline.sim.model.transactions.turn import NO_ONE, Tables, Turn, ordered

PARTITIONS = 2


class What(Enum):
    # Clients
    START = "start"
    BUMP = "bump"
    ADD = "add"
    WRITE = "write"
    PREPARE = "prepare"
    END = "end"
    # Requests
    DELIVER = "deliver"
    ARRIVE = "arrive"
    REPEAT = "repeat"
    GIVE_UP = "give up"
    # Coordinators and their log
    COMMIT = "commit"
    COMMIT_TAIL = "commit tail"
    REFUSE_RECORD = "refuse record"
    FAIL_OVER = "fail over"
    RESIGN = "resign"
    DUE = "due"
    # Markers
    MARK = "mark"
    LOSE_ANSWER = "lose answer"
    REFUSE = "refuse"
    REPEAT_MARKER = "repeat marker"


class Event(NamedTuple):
    what: What
    client: int = NO_ONE
    asked: Asked | None = None
    marking: Marking | None = None
    is_zombie: bool = False  # it happens to the coordinator of before
    choice: bool = False  # EndTxn commits; InitProducerId keeps; what was written last survives a failover
    due: Due | None = None
    lost: int = NO_ONE  # which of the answers that follow gets lost


def events(state: State, setup: Setup) -> Iterator[Event]:
    for number, client in enumerate(state.clients):
        if client.asked is not None:
            continue
        following = list(steps(state, setup, number, client))
        yield from following
        if following and is_free(setup):
            return
    for number, client in enumerate(state.clients):
        if client.asked is None or not may_arrive(state, client, client.asked):
            continue
        yield from ways(state, client.asked)
        if state.lates:
            yield Event(What.REPEAT, client=number)
            if client.asked.kind is Kind.WRITE:
                yield Event(What.GIVE_UP, client=number)
    for asked in state.late:
        yield from ways(state, asked)
    for marking in state.markings:
        yield from markers(state, setup, marking)
    yield from coordinating(state)


def is_free(setup: Setup) -> bool:
    """Does nothing that others do matter for a client's next step?"""
    return not setup.two_phase


def steps(state: State, setup: Setup, number: int, client: Client) -> Iterator[Event]:
    """What a client may do next, if it waits for nothing."""
    if client.producer == NOBODY:
        if state.starts and (number == 0 or state.starts < setup.starts):
            yield Event(What.START, client=number)
            if setup.two_phase:
                yield Event(What.START, client=number, choice=True)
        return
    if state.bumps:
        yield Event(What.BUMP, client=number)
    if client.kept is not None:
        if client.kept in state.prepared:
            yield Event(What.END, client=number, choice=True)
        yield Event(What.END, client=number)
        return
    if not client.has_begun and not state.transactions:
        return  # nothing that it could send would arrive
    may_write = client.wrote < PARTITIONS and not client.has_failed and not client.is_prepared
    if may_write and setup.version < 2 and client.added == client.wrote:
        yield Event(What.ADD, client=number)
    elif may_write:
        yield Event(What.WRITE, client=number)
    if client.wrote and not client.has_failed:
        if setup.two_phase and not client.is_prepared:
            yield Event(What.PREPARE, client=number)
        else:
            yield Event(What.END, client=number, choice=True)
    if client.has_begun or setup.version >= 2:
        yield Event(What.END, client=number)


def may_arrive(state: State, client: Client, asked: Asked) -> bool:
    """Do the limits allow it?"""
    if asked.kind is Kind.INIT and asked.producer != NOBODY:
        return bool(state.bumps) or client.has_bumped
    if client.has_begun or client.kept is not None:
        return True
    return bool(state.starts if asked.kind is Kind.INIT else state.transactions)


def ways(state: State, asked: Asked) -> Iterator[Event]:
    """Of a request that is under way."""
    if asked.kind is Kind.WRITE and asked.stage is Stage.SENT:
        yield Event(What.ARRIVE, asked=asked)
    elif asked.stage is not Stage.HELD:
        if state.active.is_loaded:
            yield Event(What.DELIVER, asked=asked)
        if state.zombie is not None:
            yield Event(What.DELIVER, asked=asked, is_zombie=True)


def markers(state: State, setup: Setup, marking: Marking) -> Iterator[Event]:
    yield Event(What.MARK, marking=marking)
    if state.losses and not marking.is_late and sender(state, marking) is not None:
        yield Event(What.LOSE_ANSWER, marking=marking)
        yield Event(What.REFUSE, marking=marking)
        if setup.version >= 2 or setup.late:
            yield Event(What.REPEAT_MARKER, marking=marking)


def coordinating(state: State) -> Iterator[Event]:
    if state.tail is not None:
        yield Event(What.COMMIT_TAIL)
    if state.active.written is not None:
        yield Event(What.COMMIT)
        if state.refusals:
            yield Event(What.REFUSE_RECORD)
    if state.failovers:
        yield Event(What.FAIL_OVER)
        if state.tail is not None or state.active.written is not None:
            yield Event(What.FAIL_OVER, choice=True)
    for due in state.active.due:
        if due != TRANSACTION or state.timeouts:
            yield Event(What.DUE, due=due)
    if state.zombie is not None:
        yield Event(What.RESIGN)
        for due in state.zombie.due:
            if due != TRANSACTION:  # it could not write that
                yield Event(What.DUE, due=due, is_zombie=True)


def sender(state: State, marking: Marking) -> Coordinator | None:
    """The coordinator that waits for the answer."""
    epoch = marking.sent.coordinator_epoch
    if marking.is_late:
        return None
    return next((one for one in (state.active, state.zombie) if one is not None and one.epoch == epoch), None)


# --- what follows


def happen(tables: Tables, state: State, event: Event) -> Turn:
    turn = Turn(tables, state, event.lost)
    match event.what:
        case What.START | What.BUMP | What.ADD | What.WRITE | What.END | What.PREPARE:
            step(turn, event)
        case What.DELIVER:
            assert event.asked is not None
            count(turn, event.asked.client)
            turn.deliver(event.asked, coordinator_of(state, event))
        case What.ARRIVE:
            assert event.asked is not None
            count(turn, event.asked.client)
            turn.arrive(event.asked)
        case What.REPEAT | What.GIVE_UP:
            leave(turn, event)
        case What.MARK | What.LOSE_ANSWER | What.REFUSE | What.REPEAT_MARKER:
            assert event.marking is not None
            carry(turn, event.what, event.marking)
        case What.COMMIT:
            assert state.active.written is not None
            turn.commit(state.active.written)
            turn.give(state.active, Ends(ErrorCode.NONE))
        case What.REFUSE_RECORD:
            turn.change(refusals=state.refusals - 1)
            turn.give(state.active, Ends(ErrorCode.NOT_ENOUGH_REPLICAS))
        case What.COMMIT_TAIL:
            assert state.tail is not None
            turn.commit(state.tail)
            turn.change(tail=None)
            turn.give(state.active, COMMITTED)
        case What.FAIL_OVER:
            fail_over(turn, survives=event.choice)
        case What.RESIGN:
            resign(turn)
        case What.DUE:
            assert event.due is not None
            if event.due == TRANSACTION:
                turn.change(timeouts=max(0, state.timeouts - 1))
            turn.give(coordinator_of(state, event), event.due)
    return turn


def coordinator_of(state: State, event: Event) -> Coordinator:
    found = state.zombie if event.is_zombie else state.active
    assert found is not None
    return found


def step(turn: Turn, event: Event) -> None:
    number = event.client
    client = turn.state.clients[number]
    asked = Asked(number, client.number, Kind.INIT, client.producer, client.transaction)
    match event.what:
        case What.PREPARE:
            turn.change(prepared=(*turn.state.prepared, asked.tag))
            turn.set_client(number, client._replace(is_prepared=True))
            return
        case What.BUMP:
            pass
        case What.START:
            asked = asked._replace(keeps=event.choice)
        case What.ADD:
            asked = asked._replace(kind=Kind.ADD, partition=client.added)
        case What.WRITE:
            sequence = client.sequences[client.wrote]
            asked = asked._replace(kind=Kind.WRITE, partition=client.wrote, sequence=sequence)
        case _:
            asked = asked._replace(kind=Kind.END, commits=event.choice)
            tag = asked.tag if client.kept is None else client.kept
            if event.choice and tag not in turn.state.wanted:
                turn.change(wanted=(*turn.state.wanted, tag))
    turn.set_client(number, client._replace(asked=asked))


def count(turn: Turn, number: int) -> None:
    """The first request of a client, or of its transaction, is on its way."""
    client = turn.state.clients[number]
    if client.asked is None:
        return
    if client.asked.kind is Kind.INIT and client.asked.producer != NOBODY:
        turn.change(bumps=max(0, turn.state.bumps - (not client.has_bumped)))
        turn.set_client(number, client._replace(has_bumped=True))
        return
    if client.has_begun or client.kept is not None:
        return
    if client.asked.kind is Kind.INIT:
        turn.change(starts=max(0, turn.state.starts - 1))
    else:
        turn.change(transactions=max(0, turn.state.transactions - 1))
    turn.set_client(number, client._replace(has_begun=True))


def leave(turn: Turn, event: Event) -> None:
    """A client sends its request again, or gives it up; the first copy may arrive all the same."""
    count(turn, event.client)
    client = turn.state.clients[event.client]
    asked = client.asked
    assert asked is not None
    turn.change(lates=turn.state.lates - 1)
    if event.what is What.REPEAT:
        turn.send_again(asked)
    else:
        left = client._replace(asked=None, has_failed=True, number=client.number + 1)
        turn.set_client(event.client, left)
    if asked.stage is not Stage.HELD or asked.kind is Kind.WRITE:
        turn.change(late=ordered((*turn.state.late, asked)))


def carry(turn: Turn, what: What, marking: Marking) -> None:
    """A marker, to the leader of its partition, and the answer back."""
    state = turn.state
    partition = marking.sent.partition
    waiting = sender(state, marking)
    left = list(state.markings)
    left.remove(marking)  # one of them, if it is there twice
    if what is What.REPEAT_MARKER:
        left.append(marking._replace(is_late=True))
    turn.change(markings=ordered(left))
    if what is not What.MARK:
        turn.change(losses=state.losses - 1)
    error: ErrorCode | None = None
    if what is What.REFUSE:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif what is not What.REPEAT_MARKER:
        error = turn.mark(marking)
    if waiting is not None:
        is_answered = what in (What.MARK, What.REFUSE)
        turn.give(waiting, Marked(partition, error if is_answered else None))


def fail_over(turn: Turn, *, survives: bool) -> None:
    """Another broker leads the partition of `__transaction_state`. The one before believes that it still does."""
    state = turn.state
    turn.change(failovers=state.failovers - 1)
    if state.zombie is not None:
        resign(turn)
    before = turn.state.active
    tail = (before.written or state.tail) if survives else None
    value = state.committed if tail is None else tail
    new, outputs = turn.tables.coordinators.load(Load(value, before.epoch + 1, tail is None))
    turn.change(zombie=before if before.is_loaded else None, tail=tail, active=new)
    turn.follow(outputs)


def resign(turn: Turn) -> None:
    """The coordinator of before learns that another broker leads."""
    zombie = turn.state.zombie
    assert zombie is not None
    turn.give(zombie, RESIGN)
    epoch = zombie.epoch
    markings = (
        one._replace(is_late=True) if one.sent.coordinator_epoch == epoch else one for one in turn.state.markings
    )
    turn.change(zombie=None, markings=ordered(markings))
