"""Unclean recovery: who is asked, when there is enough to choose from, and who is chosen."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.unit.controller.cluster import Cluster

from strandline.base.effects import Answered, Failed, Failure, Send
from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition, Uuid
from strandline.base.time import Instant
from strandline.controller.inquiries import PARTITIONS_MAX, Answer, Inquiries
from strandline.controller.recovery import best_of
from strandline.metadata import records as r
from strandline.metadata.image import RECOVERING
from strandline.metadata.losses import AT_MOST, NO_END, Evidence
from strandline.metadata.strategy import STRATEGY_KEY
from strandline.wire.messages.elect_leaders import (
    DESIGNATION,
    LONGEST_LOG_AGGRESSIVE,
    LONGEST_LOG_BALANCED,
    ElectLeadersRequest,
    TopicPartitions,
)
from strandline.wire.messages.get_replica_log_info import (
    GetReplicaLogInfoResponse,
    PartitionLogInfo,
    TopicPartitionLogInfo,
)
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

E = ErrorCode
TIMEOUT = 10_000
Log = tuple[int, int]  # what it ends with: epoch, offset


class Recovered(Cluster):
    """A cluster with ELR and recovery, and one partition on all brokers, min ISR 2."""

    def __init__(self, brokers: int = 3, *, strategy: str = "Balanced", is_managed: bool = True) -> None:
        static = {"min.insync.replicas": 2, STRATEGY_KEY: strategy}
        super().__init__(brokers, static, is_recovery_managed=is_managed, recovery_timeout_ms=TIMEOUT)
        self.controller.write(
            [r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)], self.now
        )
        self.create("t", tuple(range(1, brokers + 1)))

    def beat_all(self) -> None:
        for node, broker in self.image.brokers.items():
            if not broker.fenced:
                self.beat(node)

    def pause(self, span_ms: int) -> None:
        """Time passes, and who is there is heard of."""
        for _ in range(span_ms // 1000):
            self.wait(1000)
            self.beat_all()
        self.wait(span_ms % 1000)

    def lose(self, *nodes: int) -> None:
        """These go, one after the other, and start anew, having stopped uncleanly; they are fenced still."""
        for node in nodes:
            self.fence(node)
        for node in nodes:
            self.register(node)

    def asked(self) -> list[int]:
        """Who is being asked, once everything that was due is done."""
        self.wait(0)
        return sorted(send.token[2] for send in self.inquiries())

    def inquiries(self) -> Iterator[Send]:
        for effect in self.effects:
            if isinstance(effect, Send) and effect.token[:2] == ("controller", "logs"):
                yield effect

    def say(self, node: int, log: Log, *, high_watermark: int = 0, **fields: Any) -> None:
        """The broker answers the question that is put to it."""
        self.wait(0)
        (send,) = [send for send in self.inquiries() if send.token[2] == node]
        self.effects.remove(send)
        values = {
            "partition": 0,
            "last_written_leader_epoch": log[0],
            "log_end_offset": log[1],
            "current_leader_epoch": self.partition("t").leader_epoch,
            "high_watermark": high_watermark,
        }
        broker_epoch = fields.pop("broker_epoch", self.epochs[node])
        row = PartitionLogInfo(**{**values, **fields})
        (topic,) = send.message.topic_partitions
        rows = (TopicPartitionLogInfo(topic_id=topic.topic_id, partition_log_info=(row,)),)
        message = GetReplicaLogInfoResponse(broker_epoch=broker_epoch, topic_partition_log_info_list=rows)
        self.take(self.controller.step(Answered(send.token, message), self.now))
        self.wait(0)

    def be_silent(self, node: int) -> None:
        (send,) = [send for send in self.inquiries() if send.token[2] == node]
        self.effects.remove(send)
        self.take(self.controller.step(Failed(send.token, Failure.TIMED_OUT), self.now))

    @property
    def leader(self) -> int:
        return self.partition("t").leader


def elect(kind: int, designated: int | None = None, timeout_ms: int = 5000) -> ElectLeadersRequest:
    row = TopicPartitions(topic="t", partitions=(0,), designated_leaders=None if designated is None else (designated,))
    return ElectLeadersRequest(election_type=kind, topic_partitions=(row,), timeout_ms=timeout_ms)


def configure(cluster: Cluster, value: str) -> None:
    config = AlterableConfig(name=STRATEGY_KEY, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=(config,))
    cluster.ask(IncrementalAlterConfigsRequest(resources=(resource,)), 1)


# --- Balanced


def test_balanced_waits_until_all_who_were_eligible_last_are_there() -> None:
    cluster = Recovered()
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    assert cluster.partition("t").last_known_elr == (1, 2)
    cluster.beat(1)
    cluster.beat(3)
    assert cluster.asked() == []
    cluster.beat(2)
    assert cluster.asked() == [1, 2, 3]


def test_balanced_elects_the_most_data_once_all_who_are_there_have_answered() -> None:
    cluster = Recovered()
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    for node in (1, 2):
        cluster.beat(node)
    cluster.say(1, (0, 70))
    assert cluster.leader == NOBODY
    cluster.say(2, (0, 90))
    assert cluster.leader == NOBODY, "3 was never in doubt, and may still answer"
    cluster.say(3, (0, 50))
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), RECOVERING)
    assert (partition.elr, partition.last_known_elr) == ((), ())


def test_balanced_does_not_wait_for_others_longer_than_the_timeout() -> None:
    cluster = Recovered()
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    for node in (1, 2):
        cluster.beat(node)
    cluster.say(1, (0, 70))
    cluster.say(2, (0, 60))
    cluster.pause(TIMEOUT - 1000)
    assert cluster.leader == NOBODY
    cluster.pause(1000)
    assert cluster.leader == 1


def test_balanced_waits_for_all_who_were_eligible_last_beyond_the_timeout() -> None:
    cluster = Recovered()
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    for node in (1, 2):
        cluster.beat(node)
    cluster.say(1, (0, 70))
    cluster.say(3, (0, 50))
    cluster.pause(3 * TIMEOUT)
    assert cluster.leader == NOBODY
    cluster.say(2, (0, 90))
    assert cluster.leader == 2


def test_balanced_begins_anew_if_one_of_them_goes_again() -> None:
    cluster = Recovered()
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    for node in (1, 2):
        cluster.beat(node)
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


def test_balanced_never_elects_where_it_is_not_known_who_was_eligible_last() -> None:
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
    cluster = Recovered(strategy="Aggressive")
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    for node in (1, 2):
        cluster.beat(node)
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
    cluster = Recovered(strategy="None")
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    for node in (1, 2):
        cluster.beat(node)
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
    cluster = Recovered()
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    for node in (1, 2):
        cluster.beat(node)
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
    cluster = Recovered()
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    for node in (1, 2):
        cluster.beat(node)
    cluster.say(1, (3, 500))
    cluster.say(2, (4, 10))
    cluster.say(3, (3, 900))
    assert cluster.leader == 2


@pytest.mark.parametrize("seed", range(50))
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
    cluster = Recovered()
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    for node in (1, 2):
        cluster.beat(node)
    for node in (1, 2, 3):
        cluster.say(node, (-1, 60), high_watermark=40)
    (loss,) = cluster.partition("t").losses
    assert (loss.start, loss.end, loss.certainty) == (40, NO_END, AT_MOST)


# --- by hand


def test_by_hand_the_longest_log_leads_of_those_that_are_there() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    cluster.beat(2)
    assert cluster.ask(elect(LONGEST_LOG_AGGRESSIVE), 3) is None
    cluster.say(3, (0, 20))
    cluster.say(2, (0, 30))
    (topic,) = cluster.answer_to(cluster.sequence).replica_election_results
    assert [(row.partition_id, row.error_code) for row in topic.partition_result] == [(0, E.NONE)]
    assert (cluster.leader, cluster.partition("t").losses[0].start) == (2, 0)
    assert cluster.partition("t").losses[0].cause.startswith("longest_log_aggressive election, asked for by")


def test_by_hand_balanced_waits_no_longer_than_who_asks() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    cluster.beat(2)
    assert cluster.ask(elect(LONGEST_LOG_BALANCED), 3) is None
    sequence = cluster.sequence
    cluster.say(3, (0, 20))
    cluster.say(2, (0, 30))
    cluster.pause(5000)
    (topic,) = cluster.answer_to(sequence).replica_election_results
    assert topic.partition_result[0].error_code == E.REQUEST_TIMED_OUT
    assert (cluster.leader, cluster.controller.recoveries.partitions) == (NOBODY, {})


def test_by_hand_a_designated_replica_leads_though_another_has_more() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    cluster.beat(2)
    assert cluster.ask(elect(DESIGNATION, 3), 3) is None
    sequence = cluster.sequence
    cluster.say(2, (0, 30))
    assert cluster.leader == NOBODY
    cluster.say(3, (0, 20))
    assert cluster.answer_to(sequence).replica_election_results[0].partition_result[0].error_code == E.NONE
    assert cluster.leader == 3


REFUSED = [
    ("somebody leads", elect(LONGEST_LOG_AGGRESSIVE), (), E.ELECTION_NOT_NEEDED),
    ("nobody is designated", elect(DESIGNATION), (1, 2), E.INVALID_REQUEST),
    ("a stranger is designated", elect(DESIGNATION, 9), (1, 2), E.INVALID_REQUEST),
    ("a fenced replica is designated", elect(DESIGNATION, 1), (1, 2), E.ELIGIBLE_LEADERS_NOT_AVAILABLE),
]


@pytest.mark.parametrize(("why", "request_", "lost", "error"), REFUSED, ids=[row[0] for row in REFUSED])
def test_by_hand_a_mistake_is_refused_at_once(
    why: str, request_: ElectLeadersRequest, lost: tuple[int, ...], error: ErrorCode
) -> None:
    del why
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.alter("t", (1, 2))
    cluster.lose(*lost)
    answer = cluster.ask(request_, 3)
    assert answer.replica_election_results[0].partition_result[0].error_code == error
    assert cluster.controller.recoveries.partitions == {}


def test_by_hand_no_more_than_a_thousand_at_once() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    row = TopicPartitions(topic="u", partitions=tuple(range(1001)))
    answer = cluster.ask(ElectLeadersRequest(election_type=LONGEST_LOG_AGGRESSIVE, topic_partitions=(row,)), 3)
    errors = [found.error_code for found in answer.replica_election_results[0].partition_result]
    assert errors == [E.UNKNOWN_TOPIC_OR_PARTITION] * 1000 + [E.REQUEST_LIMIT_REACHED]


def test_clients_of_version_two_cannot_ask_for_it() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.lose(1, 2, 3)
    assert cluster.ask(elect(LONGEST_LOG_AGGRESSIVE), 2).error_code == E.INVALID_REQUEST


def test_a_controller_that_is_none_any_more_says_so() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    assert cluster.ask(elect(LONGEST_LOG_AGGRESSIVE), 3) is None
    cluster.take(cluster.controller.deactivate(cluster.now))
    assert cluster.answer_to(cluster.sequence).error_code == E.NOT_CONTROLLER


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
        assert list(inquiries.answered(NodeId(1), send.token[3], None, now)) == []
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
