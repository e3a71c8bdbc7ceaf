"""One event on its way: a state whose parts change until everything has followed that follows at once."""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from strandline.base.errors import ErrorCode
from strandline.sim.model.transactions import laws
from strandline.sim.model.transactions.coordinators import Coordinator, Coordinators
from strandline.sim.model.transactions.machine import Broken, Input, Output, Sent
from strandline.sim.model.transactions.partition_logs import Batch, PartitionLogs
from strandline.sim.model.transactions.requests import AGAIN, NOBODY, Answer, Asked, Call, Kind, Stage
from strandline.sim.model.transactions.setup import Setup
from strandline.sim.model.transactions.state import Client, Decision, Marking, State
from strandline.txn.states import COMPLETE, DECIDED
from strandline.txn.states import State as Phase
from strandline.txn.transaction import Transaction

FENCED = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)
NO_ONE = -1
T = TypeVar("T")


class Tables(NamedTuple):
    setup: Setup
    coordinators: Coordinators
    logs: PartitionLogs


class Turn:
    """`lost`: which of the answers to clients gets lost, NO_ONE for none. `why`: the first law that was broken."""

    def __init__(self, tables: Tables, state: State, lost: int = NO_ONE) -> None:
        self.tables = tables
        self.setup = tables.setup
        self.state = state
        self.lost = lost
        self.answers = 0  # to clients that wait for them
        self.why: str | None = None

    def check(self, why: str | None) -> None:
        if self.why is None:
            self.why = why

    def change(self, **changes: object) -> None:
        self.state = self.state._replace(**changes)  # type: ignore[arg-type]  # fields of State, as callers know

    def set_client(self, client: int, new: Client) -> None:
        clients = self.state.clients
        self.change(clients=(*clients[:client], new, *clients[client + 1 :]))

    def set_log(self, partition: int, given: Batch | Sent) -> ErrorCode:
        logs = self.state.logs
        new, error = self.tables.logs.step(logs[partition], given)
        self.change(logs=(*logs[:partition], new, *logs[partition + 1 :]))
        return error

    # --- coordinators

    def give(self, coordinator: Coordinator, given: Input) -> None:
        is_active = coordinator is self.state.active
        new, outputs = self.tables.coordinators.step(coordinator, given)
        self.change(**{"active" if is_active else "zombie": new})
        self.follow(outputs)

    def follow(self, outputs: tuple[Output, ...]) -> None:
        for output in outputs:
            match output:
                case Answer():
                    self.answered(output)
                case Sent():
                    self.send_marker(output)
                case Broken(why):
                    self.check(f"the coordinator's own check fails: {why}")

    def commit(self, new: Transaction) -> None:
        """A record of the transactional id is committed."""
        state = self.state
        self.check(laws.why_not_following(state, new))
        was_open = state.committed is not None and state.committed.state is Phase.ONGOING
        if new.state is Phase.ONGOING and not was_open:
            tag = state.owner_of((new.producer_id, new.epoch))
            self.check(laws.why_not_begun(state, tag))
            self.change(ongoing=tag)
        if new.state in DECIDED:
            tag = state.ongoing if was_open else None
            partitions = tuple(at.partition for at in new.partitions)
            decision = Decision(tag, (new.producer_id, new.epoch), new.commits, partitions)
            self.check(laws.why_not_decided(state, decision))
            self.change(decisions=(*state.decisions, decision))
        if new.state in COMPLETE and state.decisions:
            self.check(laws.why_not_complete(state))
        proved = [producer for producer in dict.fromkeys((new.client, new.goes_on)) if producer not in state.proved]
        self.change(committed=new, proved=(*state.proved, *proved))

    def send_marker(self, sent: Sent) -> None:
        found = None
        for decision in self.state.decisions:
            is_it = decision.producer == (sent.producer_id, sent.epoch) and decision.commits == sent.commits
            if is_it and sent.partition in decision.partitions:
                found = Marking(sent, decision.tag)
        self.check(laws.why_no_marker(found))
        if found is not None:
            self.change(markings=ordered((*self.state.markings, found)))

    # --- partitions

    def append(self, asked: Asked) -> None:
        old = self.state.logs[asked.partition]
        producer_id, epoch = asked.producer
        error = self.set_log(
            asked.partition, Batch(producer_id, epoch, asked.sequence, asked.tag, True, self.setup.version >= 2)
        )
        new = self.state.logs[asked.partition]
        if error is ErrorCode.NONE and new.records != old.records:
            self.check(laws.why_not_appended(self.state, asked, old, new))
        self.answer_arrives(asked, Answer(asked.reply_to, error))

    def arrive(self, asked: Asked) -> None:
        """A batch comes to the leader of its partition."""
        producer_id, epoch = asked.producer
        batch = Batch(producer_id, epoch, asked.sequence, asked.tag, True, self.setup.version >= 2)
        if self.tables.logs.must_ask(self.state.logs[asked.partition], batch):
            self.put(asked, asked._replace(stage=Stage.ASKING))
        else:
            self.append(asked)

    def mark(self, marking: Marking) -> ErrorCode:
        sent = marking.sent
        old = self.state.logs[sent.partition]
        error = self.set_log(sent.partition, sent)
        new = self.state.logs[sent.partition]
        self.check(laws.why_not_marked(self.state, marking, old, new))
        if error is ErrorCode.NONE:
            self.note_marker(marking)
        return error

    def note_marker(self, marking: Marking) -> None:
        sent = marking.sent
        decisions = tuple(
            one._replace(marked=tuple(sorted({*one.marked, sent.partition}))) if one.tag == marking.tag else one
            for one in self.state.decisions
        )
        self.change(decisions=decisions)
        for asked in self.batches():
            is_at = asked.partition == sent.partition and asked.producer[0] == sent.producer_id
            if is_at and asked.stage is Stage.HELD:
                self.put(asked, asked._replace(is_stale=True))

    def batches(self) -> list[Asked]:
        waiting = [client.asked for client in self.state.clients if client.asked is not None]
        return [asked for asked in (*waiting, *self.state.late) if asked.kind is Kind.WRITE]

    # --- requests

    def put(self, old: Asked, new: Asked | None) -> None:
        """A request is at another point of its way, or at the end of it."""
        client = self.state.clients[old.client]
        if client.asked == old:
            self.set_client(old.client, client._replace(asked=new))
            return
        late = [asked for asked in self.state.late if asked != old] + ([] if new is None else [new])
        self.change(late=ordered(late))

    def deliver(self, asked: Asked, coordinator: Coordinator) -> None:
        """To a coordinator: it answers at once, or holds it."""
        is_waited_for = self.state.clients[asked.client].asked == asked
        if is_waited_for or asked.kind is Kind.WRITE:
            self.put(asked, asked._replace(stage=Stage.HELD, is_stale=False))
        else:
            self.put(asked, None)
        plain = asked._replace(stage=Stage.SENT, is_stale=False)
        self.give(coordinator, Call(plain, self.setup.version, self.setup.two_phase))

    def answered(self, answer: Answer) -> None:
        """By a coordinator."""
        waiting = self.state.clients[answer.to[0]].asked
        for asked in (waiting, *self.state.late):
            if asked is not None and asked.reply_to == answer.to and asked.stage is Stage.HELD:
                if asked.kind is Kind.WRITE:
                    self.verified(asked, answer.error)
                else:
                    self.answer_arrives(asked, answer)
                return

    def verified(self, asked: Asked, error: ErrorCode) -> None:
        if error in AGAIN or asked.is_stale:
            self.put(asked, asked._replace(stage=Stage.ASKING, is_stale=False))
        elif error is ErrorCode.NONE:
            self.append(asked)
        else:
            self.answer_arrives(asked, Answer(asked.reply_to, error))

    def answer_arrives(self, asked: Asked, answer: Answer) -> None:
        """The answer that a client waits for, if it does; it may be lost."""
        client = self.state.clients[asked.client]
        if client.asked != asked:
            self.put(asked, None)
            return
        self.answers += 1
        if self.answers - 1 == self.lost:
            self.change(lates=self.state.lates - 1)
            self.send_again(asked)
        elif answer.error in AGAIN:
            self.put(asked, asked._replace(stage=Stage.SENT))
        else:
            self.take(asked, answer)

    def send_again(self, asked: Asked) -> None:
        client = self.state.clients[asked.client]
        number = client.number + 1
        again = asked._replace(number=number, stage=Stage.SENT, is_stale=False)
        self.set_client(asked.client, client._replace(number=number, asked=again))

    def take(self, asked: Asked, answer: Answer) -> None:
        """A client goes on by what it was answered."""
        client = self.state.clients[asked.client]._replace(asked=None)
        if answer.error is not ErrorCode.NONE:
            is_abortable = asked.kind is Kind.WRITE and answer.error not in FENCED
            self.set_client(asked.client, client._replace(has_failed=True) if is_abortable else stopped(client))
            return
        match asked.kind:
            case Kind.INIT:
                if asked.producer != NOBODY:
                    client = client._replace(transaction=client.transaction + 1)  # the one before is aborted
                self.begin(asked.client, client, answer)
            case Kind.ADD:
                self.set_client(asked.client, client._replace(added=asked.partition + 1))
            case Kind.WRITE:
                sequences = tuple(n + (p == asked.partition) for p, n in enumerate(client.sequences))
                self.set_client(asked.client, client._replace(wrote=asked.partition + 1, sequences=sequences))
            case Kind.END:
                self.check(laws.why_not_ended(self.state, client, asked, answer))
                self.go_on(asked.client, client, answer)

    def begin(self, number: int, client: Client, answer: Answer) -> None:
        self.check(laws.why_not_given(self.state, number, answer.producer))
        fresh = Client(producer=answer.producer, transaction=client.transaction, number=client.number)
        if answer.ongoing != NOBODY:
            fresh = fresh._replace(kept=self.state.owner_of(answer.ongoing))
        self.own(number, fresh)

    def go_on(self, number: int, client: Client, answer: Answer) -> None:
        """The transaction is ended, and the next one may begin."""
        following = client.transaction + 1
        fresh = Client(client.producer, following, sequences=client.sequences, number=client.number)
        if self.setup.version >= 2:
            self.check(laws.why_not_given(self.state, number, answer.producer))
            fresh = fresh._replace(producer=answer.producer, sequences=(0, 0))
        self.own(number, fresh)

    def own(self, number: int, client: Client) -> None:
        self.set_client(number, client)
        row = client.producer, (number, client.transaction)
        if all(producer != client.producer for producer, _ in self.state.owners):
            self.change(owners=(*self.state.owners, row))


def ordered(things: Iterable[T]) -> tuple[T, ...]:
    """What is under way has no order."""
    found = tuple(things)
    return found if len(found) < 2 else tuple(sorted(found, key=repr))


def stopped(client: Client) -> Client:
    """It was fenced. What it does next it does as another one."""
    return Client(transaction=client.transaction + 1, number=client.number)
