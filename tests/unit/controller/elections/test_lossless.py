"""Which unclean elections lose nothing, by what the replicas say of their logs."""

import pytest
from tests.unit.controller.cluster import Cluster, incarnation
from tests.unit.controller.elections.recovered import Recovered, elect

from strandline.base.effects import Report
from strandline.base.ids import NodeId
from strandline.controller.partitions.inquiries import Answer
from strandline.controller.partitions.lossless import loses_nothing
from strandline.metadata.image import RECOVERING, Partition
from strandline.metadata.losses import Evidence
from strandline.wire.messages.topics.elect_leaders import DESIGNATION

NODES = tuple(map(NodeId, (1, 2, 3)))


def partition(known: tuple[int, ...] = (2, 3), isr: tuple[int, ...] = (), elr: tuple[int, ...] = ()) -> Partition:
    return Partition(
        replicas=NODES,
        directories=(),
        isr=tuple(map(NodeId, isr)),
        leader=NodeId(-1),
        elr=tuple(map(NodeId, elr)),
        last_known_elr=tuple(map(NodeId, known)),
    )


def said(epoch: int, end: int, high_watermark: int = 0, *, is_whole: bool = True) -> Answer:
    return Answer(1, 1, Evidence(epoch, end, high_watermark), is_whole)


def judged(elected: int, answers: dict[int, Answer], of: Partition | None = None) -> bool:
    return loses_nothing(of or partition(), NodeId(elected), {NodeId(node): one for node, one in answers.items()})


WHOLE = {1: said(1, 20), 2: said(1, 20, 20), 3: said(1, 15)}


def test_if_all_who_were_eligible_last_are_whole_and_the_elected_one_is_and_has_the_most() -> None:
    assert judged(1, WHOLE)
    assert judged(2, WHOLE)


@pytest.mark.parametrize("node", [1, 2, 3])
def test_not_if_one_of_them_is_in_doubt(node: int) -> None:
    last = WHOLE[node].evidence
    assert not judged(1, WHOLE | {node: Answer(1, 1, last)})


def test_one_that_was_not_eligible_last_and_is_not_elected_may_be_in_doubt() -> None:
    assert judged(2, WHOLE | {1: said(1, 20, is_whole=False)})


@pytest.mark.parametrize("node", [2, 3])
def test_not_if_one_of_them_has_not_answered(node: int) -> None:
    assert not judged(1, {one: answer for one, answer in WHOLE.items() if one != node})


def test_not_if_another_one_has_more() -> None:
    assert not judged(3, WHOLE)
    assert not judged(1, WHOLE | {2: said(2, 5)}), "a later epoch counts before a later end"
    assert judged(2, WHOLE | {2: said(2, 5)}, partition((2,)))


def test_not_if_anybody_knows_of_more_that_was_committed() -> None:
    assert judged(1, WHOLE | {3: said(0, 5, 20)})
    assert not judged(1, WHOLE | {3: said(0, 5, 21)})


def test_members_of_isr_and_elr_count_like_those_that_were_eligible_last() -> None:
    doubtful = WHOLE | {3: said(1, 15, is_whole=False)}
    assert judged(1, doubtful, partition((2,)))
    assert not judged(1, doubtful, partition((2,), isr=(3,)))
    assert not judged(1, doubtful, partition((2,), elr=(3,)))


def test_if_last_known_elr_is_unknown_all_replicas_must_be_whole() -> None:
    assert judged(1, WHOLE, partition(()))
    for node in NODES:
        assert not judged(1, WHOLE | {node: Answer(1, 1, WHOLE[node].evidence)}, partition(()))


def test_a_partition_without_records_needs_no_records_to_be_whole() -> None:
    assert judged(1, dict.fromkeys((1, 2, 3), said(-1, 0)))


# --- in the controller


def recovering() -> Recovered:
    cluster = Recovered().outage()
    assert cluster.asked() == [1, 2, 3]
    return cluster


def test_such_a_recovery_has_no_entry_in_the_ledger_and_says_why() -> None:
    cluster = recovering()
    for node in NODES:
        cluster.say(node, (0, 20), is_whole=True)
    found = cluster.partition("t")
    assert (found.leader, found.leader_recovery_state) == (1, RECOVERING)
    assert (found.losses, found.lossless_epoch) == ((), found.leader_epoch)
    reports = [effect.text for effect in cluster.effects if isinstance(effect, Report)]
    assert any(text.startswith("t-0: broker 1 is elected, and nothing is lost") for text in reports)


def test_whether_a_replica_is_whole_does_not_make_it_a_leader() -> None:
    cluster = recovering()
    cluster.say(1, (0, 20), is_whole=True)
    cluster.say(2, (0, 25))
    cluster.say(3, (0, 10), is_whole=True)
    found = cluster.partition("t")
    assert found.leader == 2
    assert (len(found.losses), found.lossless_epoch) == (1, -1)


def test_the_next_election_is_judged_anew() -> None:
    cluster = recovering()
    for node in NODES:
        cluster.say(node, (0, 20), is_whole=True)
    lossless = cluster.partition("t").leader_epoch
    cluster.lose(1)
    cluster.beat(1)
    cluster.pause(1000)
    for node in NODES:
        cluster.say(node, (lossless, 20))
    found = cluster.partition("t")
    assert (len(found.losses), found.lossless_epoch) == (1, lossless)
    assert found.leader_epoch > lossless


def test_a_designated_leader_that_has_less_than_another_replica_has_an_entry() -> None:
    cluster = Recovered(strategy="None").outage()
    cluster.ask(elect(DESIGNATION, 3), 3)
    for node in (2, 1, 3):
        cluster.say(node, (0, 20 - node), is_whole=True)
    assert (cluster.leader, len(cluster.partition("t").losses)) == (3, 1)


# --- whether a process follows on the one that vouched for its logs


def test_a_process_follows_on_if_the_one_that_vouched_for_its_logs_was_registered_last() -> None:
    cluster = Cluster(brokers=2)
    for node, vouched in ((1, 1), (2, 7)):
        cluster.fence(node)
        cluster.ask(cluster.registration(node, life=2, whole_after=incarnation(node, vouched)), version=4)
    assert [cluster.image.brokers[node].follows_on for node in (1, 2)] == [True, False]


def test_it_does_so_too_when_it_registers_again_because_the_answer_was_lost() -> None:
    cluster = Cluster(brokers=1)
    cluster.fence(1)
    for _ in range(2):
        cluster.ask(cluster.registration(1, life=2, whole_after=incarnation(1, 1)), version=4)
    assert cluster.image.brokers[1].follows_on


def test_one_that_nobody_knows_follows_on_nobody() -> None:
    cluster = Cluster(brokers=1)
    cluster.ask(cluster.registration(2), version=4, connection=2)
    assert not cluster.image.brokers[2].follows_on
