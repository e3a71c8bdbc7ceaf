"""Traps T8, T28 and T41 where brokers have several log directories. Each test is named by its trap."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from tests.unit.controller.test_directories import Jbod as Controlled
from tests.unit.controller.test_directories import directory
from tests.unit.replica.conftest import AT
from tests.unit.replica.storage.test_directories import HOME, Jbod

from strandline.base.effects import ToController
from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, LeaderEpoch, NodeId, PartitionEpoch, Uuid
from strandline.controller.partition import Election, LastResort, Rules, Wish, plan_change
from strandline.metadata.features import ELR_FEATURE
from strandline.metadata.image import UNASSIGNED_DIRECTORY, Partition
from strandline.metadata.records import FeatureLevelRecord
from strandline.wire.messages.brokers.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from strandline.wire.messages.topics.elect_leaders import ElectLeadersRequest, TopicPartitions

E = ErrorCode
ELR_ON = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)


# --- T8: who is elected has its log


def nodes(*ids: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, ids))


SETS = [((1,), ()), ((1,), (2,)), ((), (1,)), ((), (1, 2)), ((), ()), ((1, 2, 3), ())]


@pytest.mark.parametrize("dead", [(1,), (1, 2), (1, 2, 3)], ids=str)
def test_t8_no_path_elects_a_replica_whose_directory_is_offline(dead: tuple[int, ...]) -> None:
    """All brokers live, and have a second directory that does, too. Every state, every kind of election."""
    homes = {node: directory(node, 0) for node in (1, 2, 3)}
    online = {(node, directory(node, 1)) for node in (1, 2, 3)} | {(n, homes[n]) for n in (1, 2, 3) if n not in dead}
    elected = 0
    for (isr, elr), election, resort, on in product(SETS, Election, LastResort, (False, True)):
        old = Partition(
            replicas=nodes(1, 2, 3),
            directories=tuple(homes.values()),
            isr=nodes(*isr),
            leader=NOBODY,
            leader_epoch=LeaderEpoch(5),
            partition_epoch=PartitionEpoch(9),
            elr=nodes(*elr),
        )
        rules = Rules(lambda node, where: (node, where) in online, resort, 2, on, 0)
        for wish in (Wish(election=election), Wish(isr=(), election=election)):
            change = plan_change(AT, old, wish, rules)
            if change is not None and change.leader >= 0:
                elected += 1
                assert change.leader not in dead
    assert bool(elected) == (len(dead) < 3), "and the others are elected where they may be"


def ask_for_leaders(made: Controlled, kind: int) -> None:
    request = ElectLeadersRequest(election_type=kind, topic_partitions=(TopicPartitions(topic="t", partitions=(0,)),))
    made.ask(request, version=2)


def comes_back(made: Controlled) -> None:
    """A new life of the broker, without the directory."""
    made.wait(10_000)
    request = made.registration(1, 2, made.epochs[1], log_dirs=(directory(1, 1),))
    answer = made.ask(request, version=4, connection=2001)
    made.lives[1], made.epochs[1] = 2, answer.broker_epoch
    assert not made.beat(1).is_fenced


def time_passes(made: Controlled) -> None:
    for _ in range(70):
        made.wait(5_000)
        made.beat(1)


CALLS: dict[str, Callable[[Controlled], None]] = {
    "it is unfenced": comes_back,
    "the preferred leader is asked for": lambda made: ask_for_leaders(made, 0),
    "any leader is asked for": lambda made: ask_for_leaders(made, 1),
    "leaders are looked after": time_passes,
}


@pytest.mark.parametrize("is_elr_on", [False, True], ids=["ISR", "ELR"])
@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_t8_a_broker_that_lives_does_not_lead_from_a_directory_that_it_has_lost(
    call: Callable[[Controlled], None], is_elr_on: bool
) -> None:
    """Its broker is asked to lead in every way that there is; it is the only one in the ISR, or in the ELR."""
    made = Controlled(brokers=1, static={"min.insync.replicas": 1}, elr=is_elr_on)
    made.create("t", (1,))
    assert made.assign(1, directory(1, 0), made.at("t")) == [E.NONE]
    made.lose(1, directory(1, 0))
    assert made.leads() == (NOBODY, () if is_elr_on else (1,))
    call(made)
    assert made.partition("t").leader == NOBODY
    made.wait(10_000)
    assert made.register(1, previous=made.epochs[1]).error_code == E.NONE
    made.beat(1)
    assert made.leads() == (1, (1,)), "with its directory it leads again"


# --- T28: a directory that is gone


def test_t28_a_replica_that_begins_empty_in_another_directory_is_not_eligible() -> None:
    """Its directory failed, was taken out of the configuration, and the broker restarted in order. The marker names
    other directories than there are now, so that the stop counts as unclean; what follows from that is here."""
    made = Controlled(brokers=2, static={"min.insync.replicas": 2})
    made.controller.write([ELR_ON], made.now)
    made.create("t", (1, 2))
    assert made.assign(1, directory(1, 0), made.at("t")) == [E.NONE]
    made.lose(1, directory(1, 0))
    assert (made.leads(), made.partition("t").elr) == ((2, (2,)), (1,))
    made.disconnect(made.connection(1))
    made.ask(made.registration(1, 2, previous=-1, log_dirs=(directory(1, 1),)), version=4, connection=2001)
    assert made.partition("t").elr == ()


# --- T41: the newest wish for a directory


def asked(jbod: Jbod) -> ToController:
    (only,) = jbod.nodes[NodeId(1)].assignments.flush()
    assert isinstance(only, ToController) and isinstance(only.message, AssignReplicasToDirsRequest)
    return only


def wish(jbod: Jbod, number: int) -> None:
    """What a replica of broker 1 would have to be told, if metadata had it in its first directory."""
    jbod.nodes[NodeId(1)].assignments.lies(AT, directory(1, number), directory(1, 0))


def named(request: ToController) -> Uuid:
    (row,) = request.message.directories
    found: Uuid = row.id
    return found


def success(jbod: Jbod, request: ToController) -> Any:
    return jbod.assign(request.message)


@pytest.fixture
def jbod() -> Jbod:
    made = Jbod()
    made.create_in(*HOME)
    return made


def test_t41_what_is_retried_is_the_latest_wish() -> None:
    """KAFKA-16886: the retry of a request must not say where the replica was when it was first made."""
    jbod = Jbod()
    assignments = jbod.nodes[NodeId(1)].assignments
    wish(jbod, 1)
    assert named(asked(jbod)) == directory(1, 1)
    wish(jbod, 9)
    assignments.failed(jbod.now)
    jbod.run(1_000)
    assert [where for _, where in jbod.assigned()] == [directory(1, 9)]


def test_t41_an_answer_settles_only_what_it_is_the_answer_to() -> None:
    """KAFKA-17190: the replica has moved on while the request was under way."""
    jbod = Jbod()
    assignments = jbod.nodes[NodeId(1)].assignments
    wish(jbod, 1)
    first = asked(jbod)
    wish(jbod, 9)
    assignments.answered(success(jbod, first), jbod.now)
    second = asked(jbod)
    assert named(second) == directory(1, 9)
    assignments.answered(success(jbod, second), jbod.now)
    assert assignments.flush() == []


def test_t41_a_replica_that_is_back_where_metadata_has_it_asks_for_nothing(jbod: Jbod) -> None:
    assignments = jbod.nodes[NodeId(1)].assignments
    wish(jbod, 1)
    assignments.lies(AT, directory(1, 0), directory(1, 0))
    assert assignments.flush() == []


def test_t41_a_replica_that_went_there_and_back_learns_where_it_is(jbod: Jbod) -> None:
    """The controller hears of the way there when the replica is back already."""
    node = jbod.nodes[NodeId(1)]
    jbod.controller_answers = False
    wish(jbod, 1)
    jbod.perform(NodeId(1), node.assignments.flush())
    node.assignments.lies(AT, directory(1, 0), directory(1, 0))
    jbod.controller_answers = True
    jbod.answer_controller()
    jbod.run(1_000)
    assert [where for _, where in jbod.assigned()] == [directory(1, 1), directory(1, 0)]
    assert jbod.known()[0] == directory(1, 0)


def test_t41_a_replica_is_electable_where_the_last_word_has_it() -> None:
    """First in a directory that is offline; then the broker finds it in one that lives."""
    made = Controlled(brokers=2, elr=False)
    made.create("t", (1, 2))
    made.alter("t", (1,))
    for number, leader in ((9, NOBODY), (1, 1), (9, NOBODY), (0, 1)):
        assert made.assign(1, directory(1, number), made.at("t")) == [E.NONE]
        assert (made.partition("t").directories[0], made.partition("t").leader) == (directory(1, number), leader)


def test_t41_a_wish_outlives_the_incarnation_that_had_it() -> None:
    """A replica of which no directory is known is never electable once its broker has lost one."""
    jbod = Jbod()
    jbod.controller_answers = False
    jbod.create_in(*[UNASSIGNED_DIRECTORY] * 3)
    jbod.kill(NodeId(1))
    jbod.held.clear()
    jbod.controller_answers = True
    jbod.start(NodeId(1))
    jbod.run(1_000)
    assert jbod.known()[0] == directory(1, 0)


def test_l5_a_replica_that_begins_in_another_directory_is_not_eligible_there() -> None:
    """The directory failed while the broker was up, and the replica is found in another one, which is empty."""
    cluster = Controlled(brokers=2, static={"min.insync.replicas": 2})
    cluster.controller.write([FeatureLevelRecord(name=ELR_FEATURE, feature_level=1)], cluster.now)
    cluster.create("t", (1, 2))
    cluster.assign(1, directory(1, 0), cluster.at("t"))
    cluster.fence(2)
    cluster.lose(1, directory(1, 0))
    assert cluster.partition("t").elr == (1, 2)
    cluster.assign(1, directory(1, 1), cluster.at("t"))
    partition = cluster.partition("t")
    assert (partition.leader, partition.elr, partition.last_known_elr) == (NOBODY, (2,), (1,))
    assert partition.last_known_leader == NOBODY, "it has nothing of what it led"
