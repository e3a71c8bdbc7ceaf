"""KIP-966, section "Unclean recovery": from its beginning to its end, and what happens when somebody fails meanwhile.

When it begins is in `test_kip_966_election.py`; its machine has tests of its own, `unit/controller/test_recovery.py`.
"""

from tests.sim.play import Play
from tests.unit.controller.test_recovery import TIMEOUT, Recovered

from strandline.base.ids import NOBODY
from strandline.metadata.features import ELR_FEATURE
from strandline.metadata.image import RECOVERING, Partition
from strandline.metadata.records import FeatureLevelRecord


def recovering(strategy: str = "Balanced") -> Recovered:
    """1 and 2 were eligible last, and have stopped uncleanly; 3 had left before. All are back."""
    cluster = Recovered(strategy=strategy)
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    for node in (1, 2):
        cluster.beat(node)
    assert cluster.asked() == [1, 2, 3]
    return cluster


def test_the_log_end_and_the_epoch_of_each_replica_are_asked_for_and_the_most_data_leads() -> None:
    cluster = recovering()
    for send in cluster.inquiries():
        (topic,) = send.message.topic_partitions
        assert (topic.topic_id, topic.partitions) == (cluster.at("t").topic_id, (0,))
        assert send.message.broker_id == send.token[2]
    cluster.say(1, (0, 95))
    cluster.say(3, (0, 99))
    cluster.say(2, (1, 20))
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), RECOVERING)


def test_a_recovery_is_not_begun_before_all_who_were_eligible_last_are_unfenced() -> None:
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
