"""The model of the transaction coordinator: complete, without a violation, and its parts are what they claim to be."""

import pytest
from msgspec.structs import replace
from tests.unit.sim.model.transactions.transactional import CALM, NEW, OLD, TWO_PHASE

from strandline.base.errors import ErrorCode
from strandline.sim.model.transactions import Setup, events, explore, ladder
from strandline.sim.model.transactions.coordinators import Coordinator, Coordinators
from strandline.sim.model.transactions.exploration import PRODUCER_ID, Search
from strandline.sim.model.transactions.machine import RESIGN, WAITING, Ends, Load, Sent
from strandline.sim.model.transactions.requests import NOBODY, Answer, Asked, Call, Kind
from strandline.sim.model.transactions.state import State
from strandline.txn.states import State as Phase
from strandline.txn.transaction import EPOCH_LAST

COUNTS = [
    ("a failover and a timeout", replace(NEW, starts=1), 1383, 22),
    ("two clients, and no fault", replace(CALM, starts=2, transactions=1), 294, 21),
    ("two transactions, and a marker that is lost or repeated", replace(CALM, losses=1), 1447, 33),
    ("a record that is refused", replace(CALM, transactions=1, refusals=1, timeouts=1), 283, 20),
    ("a client that asks for another epoch", replace(NEW, failovers=0, bumps=1), 2632, 25),
    ("a request that is late", replace(CALM, transactions=1, late=1), 499, 20),
    ("two failovers", replace(NEW, starts=1, failovers=2, timeouts=0), 2449, 25),
    ("epochs that are exhausted", replace(CALM, epoch=EPOCH_LAST - 1), 277, 31),
    ("transaction.version 1, and a failover", replace(OLD, transactions=1), 878, 25),
    ("transaction.version 1, and two clients", replace(CALM, version=1, starts=2, transactions=1, timeouts=1), 984, 26),
    ("two-phase commit, and another client that decides", TWO_PHASE, 871, 23),
]


@pytest.mark.slow
@pytest.mark.parametrize(("title", "setup", "states", "depth"), COUNTS, ids=[row[0] for row in COUNTS])
def test_every_state_is_reached_and_none_is_wrong(title: str, setup: Setup, states: int, depth: int) -> None:
    found = explore(setup)
    assert found.counterexample is None, "\n".join(found.counterexample or ())
    assert (found.states, found.depth) == (states, depth)


def test_each_version_is_explored_with_failovers_and_with_markers_that_are_lost() -> None:
    for version in (1, 2):
        setups = ladder(version)
        assert any(setup.failovers for setup in setups)
        assert any(setup.losses for setup in setups)
        assert {setup.version for setup in setups} == {version}
    assert [setup for setup in ladder() if setup.two_phase] == list(ladder(two_phase=True)) != []
    assert any(setup.late and setup.failovers for setup in ladder(2))


def test_before_version_2_a_late_batch_joins_the_next_transaction() -> None:
    """KIP-890 exists for this: all transactions of a producer have one epoch."""
    setup = replace(CALM, version=1, late=1)
    lines = explore(setup).counterexample
    assert lines is not None
    assert lines[0] == f"model transaction.version 1: {setup.limits()}"
    assert lines[16] == "8. client 1 gives its batch up"
    assert lines[-3:] == [
        "18. the coordinator gets the question for partition 0 of client 1, epoch 0",
        "  so: committed Ongoing with epoch 0 of partitions [0]; client 1 has epoch 0; client 2 does not run; "
        "partition 0 has 1.1 open",
        "wrong: partition 0 has a record of transaction 1 of client 1, which is over",
    ]


def test_a_client_that_goes_on_at_once_leaves_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What brokers can come to is the same if clients wait with their next request for as long as they like."""

    def brokers(setup: Setup) -> set[object]:
        search = Search(setup)
        assert search.run().counterexample is None
        records = ((one.committed, one.tail, tuple(log.records for log in one.logs)) for one in search.reached)
        return {(*row, len(one.decisions)) for row, one in zip(records, search.reached, strict=True)}

    setup = replace(NEW, failovers=1, timeouts=0)
    sparing = brokers(setup)
    monkeypatch.setattr(events, "is_free", lambda setup: False)
    assert brokers(setup) == sparing


def states(setup: Setup) -> list[State]:
    search = Search(setup)
    assert search.run().counterexample is None
    return list(search.reached)


def test_what_the_setups_promise_is_reached() -> None:
    """A model in which nothing happens breaks no law either."""
    failed_over = states(replace(NEW, starts=1, failovers=2, timeouts=0))
    assert any(one.zombie is not None and one.zombie.written is not None for one in failed_over), "it writes in vain"
    assert any(one.tail is not None and one.clients[0].wrote for one in failed_over), "what was written last survives"
    assert any(marking.is_late for one in failed_over for marking in one.markings)
    kept = states(TWO_PHASE)
    assert any(one.clients[1].kept is not None for one in kept)
    by_another = [one for one in kept if one.committed is not None and one.committed.epoch > 1 and one.decisions]
    assert {one.decisions[-1].commits for one in by_another} == {True, False}, "it decides either way"
    exhausted = states(replace(CALM, epoch=EPOCH_LAST - 1))
    assert any(one.committed is not None and one.committed.producer_id > PRODUCER_ID for one in exhausted)


# --- coordinators as values


def asked(client: int, kind: Kind, producer: tuple[int, int] = NOBODY, **changes: object) -> Call:
    return Call(Asked(client, 0, kind, producer, 1)._replace(**changes), 2, False)  # type: ignore[arg-type]  # fields


def begun(coordinators: Coordinators) -> Coordinator:
    first, _ = coordinators.load(Load(None, 0, True))
    following, outputs = coordinators.step(first, asked(0, Kind.INIT))
    assert outputs == (), "nothing proves it yet"
    return following


DONE = Ends(ErrorCode.NONE)


def test_a_coordinator_can_go_on_in_several_ways_from_one_point() -> None:
    coordinators = Coordinators(NEW)
    waits = begun(coordinators)
    done, outputs = coordinators.step(waits, DONE)
    (answer,) = outputs
    assert isinstance(answer, Answer)
    assert done.current is not None
    assert (answer.to, answer.producer) == ((0, 0), (done.current.producer_id, 0))
    refused, outputs = coordinators.step(waits, Ends(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert outputs == (Answer((0, 0), ErrorCode.COORDINATOR_NOT_AVAILABLE),)
    assert refused.current is None
    gone, outputs = coordinators.step(waits, RESIGN)
    assert outputs == (Answer((0, 0), ErrorCode.NOT_COORDINATOR),)
    assert not gone.is_loaded


def test_coordinators_that_will_do_the_same_are_one_however_they_came_there() -> None:
    coordinators = Coordinators(NEW)
    done, _ = coordinators.step(begun(coordinators), DONE)
    writes, _ = coordinators.step(done, asked(1, Kind.INIT))
    assert writes is not done
    assert coordinators.step(writes, Ends(ErrorCode.NOT_ENOUGH_REPLICAS))[0] is done, "nothing was written"
    end = asked(0, Kind.END, (1, 7), commits=True)
    assert coordinators.step(done, end)[0] is done, "it was rejected"


def test_coordinators_that_remember_other_requests_are_not_one() -> None:
    coordinators = Coordinators(NEW)
    waits = begun(coordinators)
    ways = [coordinators.step(waits, asked(1, Kind.INIT, number=number))[0] for number in (0, 1)]
    assert len({waits, *ways}) == 3
    again, outputs = coordinators.step(ways[1], WAITING)
    assert outputs == (Answer((1, 1), ErrorCode.CONCURRENT_TRANSACTIONS),)
    assert again is waits


def test_a_coordinator_that_loads_what_is_decided_sends_its_markers() -> None:
    coordinators = Coordinators(NEW)
    at, (answer,) = coordinators.step(begun(coordinators), DONE)
    assert isinstance(answer, Answer)
    for call in (asked(0, Kind.WRITE, answer.producer, partition=1), asked(0, Kind.END, answer.producer, commits=True)):
        at, _ = coordinators.step(at, call)
        at, outputs = coordinators.step(at, DONE)
    assert at.current is not None
    assert at.current.state is Phase.PREPARE_COMMIT
    sent = [output for output in outputs if isinstance(output, Sent)]
    _, again = coordinators.load(Load(at.current, 1, True))
    assert list(again) == [one._replace(coordinator_epoch=1) for one in sent] != []
