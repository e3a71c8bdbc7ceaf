"""The laws of the model of transactions, each with a state that breaks it."""

from msgspec.structs import replace
from tests.rows import each
from tests.unit.sim.model.transactions.transactional import NEW

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.sim.model.transactions import laws
from strandline.sim.model.transactions.coordinators import Coordinators
from strandline.sim.model.transactions.exploration import initial
from strandline.sim.model.transactions.machine import NOW, Sent
from strandline.sim.model.transactions.partition_logs import Batch, PartitionLog, PartitionLogs
from strandline.sim.model.transactions.requests import ID, TOPIC, Answer, Asked, Kind
from strandline.sim.model.transactions.state import Client, Decision, Marking, State
from strandline.sim.model.transactions.turn import Tables
from strandline.txn.states import State as Phase
from strandline.txn.transaction import Transaction

LOGS = PartitionLogs()
TABLES = Tables(NEW, Coordinators(NEW), LOGS)
FIRST, SECOND, OTHER = (0, 1), (0, 2), (1, 1)
ONGOING = Transaction(ID, 7, 3, 60_000, Phase.ONGOING, NOW, partitions=(TopicPartition(TOPIC, 0),), version=2)
DECIDED = Decision(FIRST, (7, 4), True, (0, 1))


def at(**changes: object) -> State:
    return initial(TABLES)._replace(**changes)  # type: ignore[arg-type]  # fields of State


def log(*given: Batch | Sent) -> PartitionLog:
    found = LOGS.empty
    for one in given:
        found, error = LOGS.step(found, one)
        assert error is ErrorCode.NONE
    return found


def batch(tag: tuple[int, int], epoch: int = 3, sequence: int = 0) -> Batch:
    return Batch(7, epoch, sequence, tag, True, False)


def marker(commits: bool, epoch: int = 4, version: int = 2) -> Sent:
    return Sent(0, 7, epoch, commits, 0, version)


def phase(state: Phase, **changes: object) -> Transaction:
    return replace(ONGOING, state=state, **changes)


@each(
    ("old", "new", "why"),
    [
        (
            phase(Phase.PREPARE_COMMIT),
            phase(Phase.PREPARE_ABORT),
            "PrepareCommit is committed, and PrepareAbort follows",
        ),
        (
            phase(Phase.PREPARE_COMMIT),
            phase(Phase.COMPLETE_ABORT),
            "PrepareCommit is committed, and CompleteAbort follows",
        ),
        (ONGOING, phase(Phase.COMPLETE_COMMIT), "CompleteCommit follows Ongoing"),
        (ONGOING, replace(ONGOING, epoch=2), "producer epoch 3 is followed by 2"),
        (phase(Phase.EMPTY), phase(Phase.EMPTY, producer_id=5, epoch=0), "producer id 5 was in use before"),
        (phase(Phase.EMPTY), phase(Phase.EMPTY, producer_id=6, epoch=0), None),
        (phase(Phase.PREPARE_COMMIT), phase(Phase.COMPLETE_COMMIT), None),
        (phase(Phase.COMPLETE_COMMIT), phase(Phase.COMPLETE_COMMIT), None),
    ],
)
def test_no_decision_changes_and_no_epoch_goes_back(old: Transaction, new: Transaction, why: str | None) -> None:
    assert laws.why_not_following(at(committed=old, proved=((5, 0), (7, 3))), new) == why


def test_nothing_late_opens_a_transaction() -> None:
    assert laws.why_not_begun(at(), None) == "a transaction begins with an epoch that no client was given"
    again = "a late request opens transaction 1 of client 1 again, which was decided"
    assert laws.why_not_begun(at(decisions=(DECIDED,)), FIRST) == again
    assert laws.why_not_begun(at(decisions=(DECIDED,)), SECOND) is None


def test_a_decision_is_of_one_transaction_and_of_all_of_it() -> None:
    has_records = at(logs=(LOGS.empty, log(batch(FIRST))), wanted=(FIRST,))
    assert laws.why_not_decided(has_records, DECIDED) is None
    assert laws.why_not_decided(has_records, DECIDED._replace(partitions=(0,))) == (
        "partition 1 has records of transaction 1 of client 1, and is not in its decision"
    )
    assert laws.why_not_decided(at(wanted=(FIRST,), decisions=(DECIDED,)), DECIDED) == (
        "transaction 1 of client 1 is decided twice"
    )
    assert laws.why_not_decided(at(), DECIDED) == (
        "transaction 1 of client 1 is committed, and its client did not ask for that"
    )
    assert laws.why_not_decided(at(), DECIDED._replace(commits=False)) is None
    assert laws.why_not_decided(at(), DECIDED._replace(tag=None)) == "a commit of a transaction of nobody"


def test_readers_see_all_of_a_transaction_or_nothing() -> None:
    old = log(batch(FIRST))
    aborted, committed = log(batch(FIRST), marker(False)), log(batch(FIRST), marker(True))
    marking = Marking(marker(True), FIRST)
    assert laws.why_not_marked(at(logs=(old, committed)), marking, old, committed) is None
    assert laws.why_not_marked(at(logs=(old, aborted)), marking, old, committed) == (
        "transaction 1 of client 1 is committed in one partition, and aborted in another"
    )
    assert laws.why_not_marked(at(), Marking(marker(True), SECOND), old, committed) == (
        "a marker of transaction 2 of client 1 ends transaction 1 of client 1"
    )


@each(
    ("state", "why"),
    [
        (at(committed=ONGOING, ongoing=FIRST), None),
        (
            at(committed=ONGOING, ongoing=SECOND),
            "partition 0 has a record of transaction 1 of client 1, and the coordinator does not know of it",
        ),
        (
            at(committed=phase(Phase.EMPTY), ongoing=FIRST),
            "partition 0 has a record of transaction 1 of client 1, and the coordinator does not know of it",
        ),
        (
            at(committed=replace(ONGOING, partitions=(TopicPartition(TOPIC, 1),)), ongoing=FIRST),
            "partition 0 has a record of transaction 1 of client 1, and the coordinator does not know of it",
        ),
        (at(decisions=(DECIDED,)), None),
        (
            at(decisions=(DECIDED._replace(marked=(0,)),)),
            "partition 0 has a record of transaction 1 of client 1, which is over",
        ),
        (
            at(decisions=(DECIDED._replace(partitions=(1,)),)),
            "partition 0 has a record of transaction 1 of client 1, which is over",
        ),
        (
            at(committed=ONGOING, ongoing=FIRST, logs=(LOGS.empty, log(batch(OTHER)))),
            "transaction 1 of client 1 and transaction 1 of client 2 are open at once",
        ),
    ],
)
def test_a_record_is_appended_only_where_its_transaction_is_open(state: State, why: str | None) -> None:
    asked = Asked(0, 0, Kind.WRITE, (7, 3), 1, partition=0)
    assert laws.why_not_appended(state, asked, LOGS.empty, log(batch(FIRST))) == why


def test_each_epoch_is_one_clients_and_a_record_proves_it() -> None:
    state = at(proved=((7, 3), (7, 4)), owners=(((7, 4), FIRST),))
    assert laws.why_not_given(state, 0, (7, 4)) is None
    assert laws.why_not_given(state, 1, (7, 3)) is None, "an answer that comes late"
    assert laws.why_not_given(state, 1, (7, 4)) == "client 2 is given epoch 4 of client 1"
    assert laws.why_not_given(state, 0, (7, 3)) == "client 1 is given epoch 3, and had epoch 4 before"
    assert laws.why_not_given(state, 1, (7, 5)) == "client 2 is given epoch 5, and no committed record says so"


def test_what_a_client_is_told_was_decided() -> None:
    end = Asked(0, 0, Kind.END, (7, 3), 1, commits=True)
    reported = Answer((0, 0), ErrorCode.NONE, (7, 4))
    name = "transaction 1 of client 1"

    def why(state: State, asked: Asked = end, answer: Answer = reported) -> str | None:
        return laws.why_not_ended(state, Client((7, 3)), asked, answer)

    assert why(at(decisions=(DECIDED,))) is None
    assert why(at()) == f"the commit of {name} is acknowledged, and not decided"
    abort = end._replace(commits=False)
    assert why(at(), abort) is None, "of nothing"
    assert why(at(logs=(log(batch(FIRST)),)), abort) == f"the abort of {name} is acknowledged, and not decided"
    assert why(at(decisions=(DECIDED,)), abort) == f"the abort of {name} is acknowledged, and the opposite decided"
    twice = reported._replace(producer=(7, 5))
    assert why(at(decisions=(DECIDED,)), end, twice) == f"{name} is ended with epoch 4, and once more with 5"


def test_partitions_never_take_an_older_epoch() -> None:
    old, newer = log(batch(FIRST), marker(True)), log(batch(FIRST, epoch=2))
    assert laws.why_epochs_back(old, old) is None
    assert laws.why_epochs_back(old, newer) == "producer epoch 4 is followed by 2 in a partition"
