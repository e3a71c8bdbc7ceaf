"""KIP-966, section "Unclean recovery": from its beginning to its end, and what happens when somebody fails meanwhile.

When it begins is in `test_kip_966_election.py`; its machine has tests of its own,
`unit/controller/elections/test_recovery.py`.
"""

from random import Random

import pytest
from tests.sim.play import Play
from tests.unit.controller.elections.recovered import TIMEOUT, Recovered

from strandline.base.ids import NOBODY, NodeId
from strandline.metadata.features import ELR_FEATURE
from strandline.metadata.image import RECOVERING, Partition
from strandline.metadata.records import FeatureLevelRecord


def recovering(strategy: str = "Balanced") -> Recovered:
    """1 and 2 were eligible last, and have stopped uncleanly; 3 had left before. All are back."""
    cluster = Recovered(strategy=strategy).outage()
    assert cluster.asked() == [1, 2, 3]
    return cluster


def test_the_log_end_and_the_epoch_of_each_replica_are_asked_for_and_the_most_data_leads() -> None:
    cluster = recovering()
    for send in cluster.inquiries():
        (topic,) = send.message.topic_partitions
        assert (topic.topic_id, topic.partitions) == (cluster.at("t").topic_id, (0,))
        assert send.message.broker_id == send.token.broker
    cluster.say(1, (0, 95))
    cluster.say(3, (0, 99))
    cluster.say(2, (1, 20))
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), RECOVERING)


def test_a_recovery_is_not_begun_before_all_replicas_that_were_eligible_last_are_unfenced() -> None:
    """Rejected alternatives, "elects when a given number of replicas have replied": 3 fell behind, 1 and 2 had unclean
    shutdowns. 2 has lost data, and 3 never had them. To choose between the two would lose what 1 has."""
    cluster = Recovered()
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    cluster.beat(2)
    cluster.pause(3 * TIMEOUT)
    assert (cluster.asked(), cluster.leader) == ([], NOBODY)
    cluster.beat(1)
    for node, end in ((2, 30), (3, 20), (1, 90)):
        cluster.say(node, (0, end))
    assert cluster.leader == 1


def test_a_replica_that_restarts_before_it_was_asked_answers_in_its_new_epoch() -> None:
    cluster = recovering()
    cluster.be_silent(1)
    cluster.fence(1)
    cluster.register(1)
    cluster.beat(1)
    cluster.say(2, (0, 30))
    cluster.say(3, (0, 20))
    cluster.pause(1000)
    cluster.say(1, (0, 80))
    assert cluster.leader == 1


def test_a_replica_that_restarts_after_its_answer_is_asked_anew_once_it_has_registered() -> None:
    """What it answered is of a log that it may have lost since."""
    cluster = recovering()
    cluster.say(1, (0, 80))
    cluster.fence(1)
    cluster.register(1)
    cluster.say(2, (0, 30))
    cluster.say(3, (0, 20))
    assert cluster.leader == NOBODY
    cluster.beat(1)
    cluster.pause(1000)
    cluster.say(1, (0, 10))
    assert cluster.leader == 2


def test_a_replica_that_fails_after_its_answer_may_lead_and_leads_no_longer_once_it_registers() -> None:
    cluster = recovering()
    cluster.say(1, (0, 80))
    cluster.disconnect(cluster.connection(1))  # it fails, and nobody has noticed
    cluster.say(2, (0, 30))
    cluster.say(3, (0, 20))
    assert cluster.leader == 1
    cluster.register(1)
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.elr, partition.last_known_elr) == (NOBODY, (), (), (1,))


def test_nothing_of_a_recovery_stands_in_the_metadata_log_and_the_next_controller_begins_another() -> None:
    cluster = recovering()
    before = len(cluster.log.records)
    cluster.say(1, (0, 80))
    cluster.say(2, (0, 30))
    assert len(cluster.log.records) == before
    image = cluster.image.copy()
    cluster.controller.deactivate(cluster.now)
    cluster.effects.clear()
    cluster.take(cluster.controller.activate(image, 2, cluster.now))
    assert cluster.asked() == [1, 2, 3]
    cluster.say(2, (0, 30))
    cluster.say(3, (0, 20))
    assert cluster.leader == NOBODY, "what 1 has told the former controller is forgotten"


class ValidAnswers:
    """What each broker has said of its log that is still true, noted beside the controller."""

    def __init__(self, cluster: Recovered) -> None:
        self.cluster = cluster
        self.answers: dict[int, tuple[int, int, tuple[int, int]]] = {}

    def say(self, node: int, log: tuple[int, int]) -> None:
        self.answers[node] = (self.cluster.epochs[node], self.cluster.partition("t").leader_epoch, log)
        self.cluster.say(node, log)

    def true(self, before: Partition) -> dict[int, tuple[int, int]]:
        return {
            node: log
            for node, (broker_epoch, leader_epoch, log) in self.answers.items()
            if broker_epoch == self.cluster.epochs[node] and leader_epoch == before.leader_epoch
        }


def something_happens(cluster: Recovered, answers: ValidAnswers, rng: Random) -> None:
    node = rng.randrange(1, 5)
    partition = cluster.partition("t")
    match rng.choice(("goes", "crashes", "restarts", "is back", "is back", "says", "says", "says", "time", "ISR")):
        case "goes":
            cluster.beat(node, want_fence=True)
        case "crashes":
            cluster.lose(node)
        case "restarts":
            cluster.beat(node, want_fence=True)
            cluster.register(node, previous=cluster.epochs[node])
        case "is back":
            cluster.beat(node)
        case "says":
            if cluster.leader == NOBODY and node in cluster.asked():
                answers.say(node, (rng.randrange(3), rng.randrange(3)))
        case "time":
            cluster.pause(rng.choice((1000, TIMEOUT)))
        case _:
            if partition.leader != NOBODY:
                cluster.alter("t", tuple({partition.leader, *rng.sample((1, 2, 3, 4), 2)}), leader_recovery_state=0)


@pytest.mark.parametrize("strategy", ["Balanced", "Aggressive"])
def test_whatever_happens_the_elected_replica_has_the_most_of_those_whose_answers_count(strategy: str) -> None:
    """And with Balanced all who were eligible last are among them."""
    recovered = 0
    for seed in range(50):
        rng, cluster = Random(seed), Recovered(4, strategy=strategy)
        answers = ValidAnswers(cluster)
        for _ in range(150):
            before = cluster.partition("t")
            something_happens(cluster, answers, rng)
            cluster.wait(0)
            after = cluster.partition("t")
            if len(after.losses) == len(before.losses):
                continue
            recovered += 1
            true = answers.true(before) if before.leader == NOBODY else {}
            assert after.losses[-1].replica in true
            if strategy == "Balanced":
                assert before.last_known_elr and set(before.last_known_elr) <= set(true)
            there = [node for node in true if cluster.image.is_active(NodeId(node))]
            assert true[after.losses[-1].replica] == max(true[node] for node in there)
    assert recovered > 5


def test_real_brokers_whose_machines_all_lost_power_are_asked_for_their_logs_and_have_a_leader_again() -> None:
    """End to end: registrations, questions and answers, the election, and followers that copy from there."""
    play = Play(
        min_insync_replicas="2",
        unclean_recovery_manager_enabled="true",
        unclean_recovery_strategy="Balanced",  # which goes before the older key
        unclean_leader_election_enable="true",
        unclean_recovery_timeout_ms="3000",
    )
    controller = play.world.controller()
    assert controller is not None and controller.node is not None
    active = controller.node.controller
    assert active is not None
    elr_on = FeatureLevelRecord(name=ELR_FEATURE, feature_level=1)
    controller.run("elr is switched on", lambda node, now: active.write([elr_on], now))
    play.run(500)

    def partition() -> Partition:
        found = play.world.laws.metadata.image.partition(play.at())
        assert found is not None
        return found

    for machine in play.machines:
        machine.power_cut()
    for machine in play.machines:
        machine.start()
    play.until("it was recovered", lambda: partition().losses)
    (loss,) = partition().losses
    assert loss.cause == "unclean recovery, Balanced"
    play.until("it is led", lambda: partition().leader != NOBODY)
    play.end()
