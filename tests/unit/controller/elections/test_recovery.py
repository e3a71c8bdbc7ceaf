"""Unclean recovery: who is asked, when there is enough to choose from, and who is chosen."""

from random import Random

import pytest
from tests.rows import each
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.elections.recovered import TIMEOUT, Recovered

from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition, Uuid
from strandline.base.time import Instant
from strandline.controller.partitions.inquiries import Answer, Inquiries
from strandline.controller.partitions.recovery import best_of
from strandline.metadata import records as r
from strandline.metadata.image import RECOVERING
from strandline.metadata.losses import AT_MOST, NO_END, Evidence
from strandline.metadata.strategy import STRATEGY_KEY
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.own.get_replica_log_info import PARTITIONS_MAX

E = ErrorCode


def configure(cluster: Cluster, value: str) -> None:
    config = AlterableConfig(name=STRATEGY_KEY, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=(config,))
    cluster.ask(IncrementalAlterConfigsRequest(resources=(resource,)), 1)


# --- Balanced


def test_balanced_waits_until_all_replicas_that_were_eligible_last_are_there() -> None:
    cluster = Recovered()
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    assert cluster.partition("t").last_known_elr == (1, 2)
    cluster.beat(1)
    cluster.beat(3)
    assert cluster.asked() == []
    cluster.beat(2)
    assert cluster.asked() == [1, 2, 3]


def test_balanced_elects_the_most_data_once_all_live_replicas_have_answered() -> None:
    cluster = Recovered().outage()
    cluster.say(1, (0, 70))
    assert cluster.leader == NOBODY
    cluster.say(2, (0, 90))
    assert cluster.leader == NOBODY, "3 was never in doubt, and may still answer"
    cluster.say(3, (0, 50))
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), RECOVERING)
    assert (partition.elr, partition.last_known_elr) == ((), ())


def test_balanced_does_not_wait_for_others_longer_than_the_timeout() -> None:
    cluster = Recovered().outage()
    cluster.say(1, (0, 70))
    cluster.say(2, (0, 60))
    cluster.pause(TIMEOUT - 1000)
    assert cluster.leader == NOBODY
    cluster.pause(1000)
    assert cluster.leader == 1


def test_balanced_waits_for_all_replicas_that_were_eligible_last_beyond_the_timeout() -> None:
    cluster = Recovered().outage()
    cluster.say(1, (0, 70))
    cluster.say(3, (0, 50))
    cluster.pause(3 * TIMEOUT)
    assert cluster.leader == NOBODY
    cluster.say(2, (0, 90))
    assert cluster.leader == 2


def test_balanced_begins_anew_if_one_of_them_goes_again() -> None:
    cluster = Recovered().outage()
    cluster.say(1, (0, 70))
    cluster.fence(1)
    cluster.say(2, (0, 60))
    cluster.say(3, (0, 50))
    assert cluster.leader == NOBODY
    cluster.register(1)
    cluster.beat(1)
    cluster.pause(1000)
    cluster.say(1, (0, 65))
    assert cluster.leader == 1, "it answered anew, and still has the most"


def test_balanced_never_elects_if_last_known_elr_is_unknown() -> None:
    cluster = Recovered()
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    record = r.PartitionChangeRecord(topic_id=cluster.at("t").topic_id, partition_id=0, last_known_elr=())
    cluster.take(cluster.controller.write([record], cluster.now))
    for node in (1, 2):
        cluster.beat(node)
    assert cluster.asked() == []
    cluster.pause(3 * TIMEOUT)
    assert (cluster.asked(), cluster.leader) == ([], NOBODY)


def test_balanced_waits_for_eligible_replicas_that_are_fenced() -> None:
    cluster = Recovered()
    cluster.alter("t", (1, 2))
    cluster.fence(2)
    cluster.lose(1)
    cluster.beat(1)
    assert cluster.partition("t").elr == (2,)
    cluster.pause(2 * TIMEOUT)
    assert (cluster.asked(), cluster.leader) == ([], NOBODY)
    cluster.beat(2)
    assert (cluster.leader, cluster.partition("t").losses) == (2, ())


# --- Aggressive


def test_aggressive_does_not_wait_for_eligible_replicas_that_are_fenced() -> None:
    cluster = Recovered(strategy="Aggressive")
    cluster.alter("t", (1, 2))
    cluster.fence(2)
    cluster.fence(1)
    assert cluster.partition("t").elr == (1, 2)
    cluster.say(3, (0, 40))
    assert cluster.leader == NOBODY, "a better one may come back in time"
    cluster.pause(TIMEOUT)
    assert (cluster.leader, cluster.partition("t").leader_recovery_state) == (3, RECOVERING)


def test_aggressive_is_done_as_soon_as_every_replica_has_answered() -> None:
    cluster = Recovered(strategy="Aggressive").outage()
    cluster.say(3, (0, 80))
    cluster.say(2, (0, 90))
    cluster.say(1, (0, 85))
    assert cluster.leader == 2


def test_aggressive_takes_the_first_answer_after_the_timeout() -> None:
    cluster = Recovered(strategy="Aggressive")
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    cluster.fence(3)
    cluster.pause(TIMEOUT + 1000)
    assert cluster.leader == NOBODY
    cluster.beat(3)
    cluster.say(3, (0, 10))
    assert cluster.leader == 3


# --- None, and whoever decides later


def test_none_asks_nobody_until_the_strategy_is_another() -> None:
    cluster = Recovered(strategy="None").outage()
    cluster.pause(2 * TIMEOUT)
    assert (cluster.asked(), cluster.leader) == ([], NOBODY)
    configure(cluster, "Balanced")
    assert cluster.asked() == [1, 2, 3]


def test_nobody_is_asked_where_recovery_is_not_managed() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.lose(1, 2, 3)
    for node in (1, 2, 3):
        cluster.beat(node)
    assert cluster.asked() == []


# --- which answers count


def damaged() -> Recovered:
    cluster = Recovered().outage()
    cluster.say(3, (0, 50))
    cluster.say(2, (0, 60))
    return cluster


def test_an_answer_of_another_incarnation_does_not_count() -> None:
    """The broker was restarted after it answered, or the answer says so itself."""
    cluster = damaged()
    cluster.say(1, (0, 90), broker_epoch=cluster.epochs[1] - 1)
    assert cluster.leader == NOBODY
    cluster.pause(1000)
    cluster.say(1, (0, 55))
    assert cluster.leader == 2


def test_an_answer_from_before_the_partitions_epoch_does_not_count() -> None:
    """The broker has not heard yet that nobody leads: what it follows may still give it records."""
    cluster = damaged()
    cluster.say(1, (0, 90), current_leader_epoch=cluster.partition("t").leader_epoch - 1)
    assert cluster.leader == NOBODY
    cluster.pause(1000)
    cluster.say(1, (0, 55))
    assert cluster.leader == 2


IMPOSSIBLE = [
    {"last_written_leader_epoch": (1 << 31) - 1},
    {"last_written_leader_epoch": -2},
    {"log_end_offset": (1 << 63) - 1},
    {"log_end_offset": -1},
    {"high_watermark": (1 << 63) - 1},
    {"high_watermark": -1},
]


@pytest.mark.parametrize("said", IMPOSSIBLE, ids=str)
def test_what_no_log_can_be_like_does_not_count(said: dict[str, int]) -> None:
    cluster = damaged()
    cluster.say(1, (0, 90), **said)
    assert cluster.leader == NOBODY
    cluster.pause(1000)
    cluster.say(1, (0, 55))
    assert cluster.leader == 2


def test_a_replica_that_cannot_answer_is_asked_again() -> None:
    cluster = damaged()
    cluster.say(1, (-1, -1), error_code=E.KAFKA_STORAGE_ERROR)
    assert (cluster.leader, cluster.asked()) == (NOBODY, [])
    cluster.pause(1000)
    cluster.be_silent(1)
    cluster.pause(1000)
    cluster.say(1, (0, 70))
    assert cluster.leader == 1


def test_another_controller_begins_anew() -> None:
    """It has the metadata, and in them nothing of the recovery."""
    cluster = damaged()
    image = cluster.image.copy()
    cluster.take(cluster.controller.deactivate(cluster.now))
    cluster.effects.clear()
    cluster.take(cluster.controller.activate(image, 2, cluster.now))
    assert cluster.asked() == [1, 2, 3]
    for node, end in ((1, 10), (2, 30), (3, 20)):
        cluster.say(node, (0, end))
    assert cluster.leader == 2
    assert cluster.controller.recoveries.finished == 1


# --- who is chosen


def test_the_later_epoch_wins_over_the_longer_log() -> None:
    cluster = Recovered().outage()
    cluster.say(1, (0, 500))
    cluster.say(2, (1, 10))
    cluster.say(3, (0, 900))
    assert cluster.leader == 2


@each("seed", range(50))
def test_the_choice_is_that_of_a_sorted_list(seed: int) -> None:
    rng = Random(seed)
    cluster = Recovered(5)
    partition = cluster.partition("t")
    logs = {NodeId(node): (rng.randrange(3), rng.randrange(3)) for node in rng.sample(range(1, 6), rng.randrange(1, 6))}
    known = {node: Answer(1, 1, Evidence(epoch, end, 0)) for node, (epoch, end) in logs.items()}
    rank = sorted(logs, key=lambda node: (-logs[node][0], -logs[node][1], partition.replicas.index(node)))
    assert best_of(partition, known) == rank[0]


# --- what is written down of it


def test_the_ledger_says_from_where_on_records_may_be_lost() -> None:
    """The elected replica had a beginning of the last leader's log, so everything below its end is what it was."""
    cluster = damaged()
    epoch = cluster.partition("t").leader_epoch
    cluster.say(1, (epoch - 1, 55), high_watermark=40)
    (loss,) = cluster.partition("t").losses
    assert (cluster.leader, loss.replica, loss.start, loss.end, loss.certainty) == (1, 1, 55, NO_END, AT_MOST)
    assert (loss.old_epoch, loss.new_epoch) == (epoch, epoch + 1)
    assert (loss.time_ms, loss.cause) == (cluster.now, "unclean recovery, Balanced")


def test_the_ledger_trusts_an_older_log_up_to_its_high_watermark() -> None:
    """It may have records of an old leader in the place of others that a later one committed."""
    cluster = Recovered().outage()
    for node in (1, 2, 3):
        cluster.say(node, (-1, 60), high_watermark=40)
    (loss,) = cluster.partition("t").losses
    assert (loss.start, loss.end, loss.certainty) == (40, NO_END, AT_MOST)


# --- many partitions


def test_of_very_many_partitions_others_are_asked_for_each_time() -> None:
    """A broker that can say nothing of the first two thousand is asked for the rest, too."""
    inquiries = Inquiries("PLAINTEXT")
    broker = Recovered(1).image.brokers[NodeId(1)]
    ats = [TopicIdPartition(Uuid(bytes(16)), index) for index in range(4500)]
    seen: dict[int, None] = {}
    for turn in range(3):
        (send,) = inquiries.ask({NodeId(1): ats}, {NodeId(1): broker})
        (topic,) = send.message.topic_partitions
        assert len(topic.partitions) == PARTITIONS_MAX
        assert list(inquiries.ask({NodeId(1): ats}, {NodeId(1): broker})) == [], "one request at a time"
        seen.update(dict.fromkeys(topic.partitions))
        now = Instant(1000 * turn)
        assert list(inquiries.answered(NodeId(1), send.token.serial, None, now)) == []
        assert list(inquiries.ask({NodeId(1): ats}, {NodeId(1): broker})) == [], "a pause"
        assert inquiries.expire(inquiries.deadline())
    assert len(seen) == len(ats)


def test_daily_life_is_no_reason_to_look_at_partitions_without_a_leader() -> None:
    cluster = Recovered(strategy="None")
    cluster.create("u", (1, 2, 3))
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    cluster.wait(0)
    assert not cluster.controller.recoveries.is_due
    cluster.alter("u", (3,))
    assert not cluster.controller.recoveries.is_due
    cluster.beat(1)
    assert cluster.controller.recoveries.is_due
