"""A broker says that replicas lost records: they leave ISR and ELR, they alone, and before it is let in."""

from typing import Any

import pytest
from tests.unit.controller.cluster import Cluster

from strandline.base.effects import Report
from strandline.base.errors import ErrorCode
from strandline.metadata.losses import CAUSES, NO_END, Cause
from strandline.metadata.records import PartitionChangeRecord
from strandline.metadata.registrations import RECOVERED, RECOVERING
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.brokers.broker_registration import LostPartition, LostTopic


def lost(cluster: Cluster, *names: str, start: int = 50, end: int = 100, time_ms: int = 7) -> tuple[LostTopic, ...]:
    row = LostPartition(partition_index=0, start=start, end=end, cause=Cause.SHORT, time_ms=time_ms)
    return tuple(LostTopic(topic_id=cluster.image.topic_ids[name], partitions=(row,)) for name in names)


def stopped_in_order(*topics: str) -> Cluster:
    """Brokers 3, 2 and 1 have stopped in this order: 1 and 2 are eligible."""
    cluster = Cluster(brokers=3, static={"min.insync.replicas": 2})
    for topic in topics:
        cluster.create(topic, (1, 2, 3))
    for node in (3, 2, 1):
        while not cluster.beat(node, want_shut_down=True).should_shut_down:
            pass
    return cluster


def register(cluster: Cluster, node: int, said: tuple[LostTopic, ...] = (), life: int = 2) -> Any:
    request = cluster.registration(node, life=life, previous=cluster.epochs[node], lost_replicas=said)
    answer = cluster.ask(request, version=4, connection=1000 * life + node)
    assert answer.error_code == 0
    cluster.lives[node], cluster.epochs[node] = life, answer.broker_epoch
    return answer


def beat(cluster: Cluster, node: int, said: tuple[LostTopic, ...] = (), **fields: Any) -> Any:
    request = BrokerHeartbeatRequest(
        broker_id=node,
        broker_epoch=cluster.epochs[node],
        current_metadata_offset=cluster.log.next_offset - 1,
        lost_replicas=said,
        **fields,
    )
    return cluster.ask(request, version=1, connection=cluster.connection(node))


def changes(cluster: Cluster, since: int) -> list[PartitionChangeRecord]:
    return [record for record in cluster.log.records[since:] if isinstance(record, PartitionChangeRecord)]


def test_a_registration_takes_only_what_was_lost_from_the_elr() -> None:
    cluster = stopped_in_order("whole", "torn")
    assert cluster.partition("torn").elr == cluster.partition("whole").elr == (1, 2)
    before = len(cluster.log.batches)
    register(cluster, 1, lost(cluster, "torn"))
    assert len(cluster.log.batches) == before + 1, "in the batch of the registration"
    assert (cluster.partition("torn").elr, cluster.partition("torn").last_known_elr) == ((2,), (1,))
    assert cluster.partition("whole").elr == (1, 2)
    beat(cluster, 1)
    assert (cluster.partition("torn").leader, cluster.partition("whole").leader) == (-1, 1)
    register(cluster, 2)
    beat(cluster, 2)
    torn = cluster.partition("torn")
    assert (torn.leader, torn.leader_recovery_state, torn.losses) == (2, RECOVERED, ())


def test_the_reason_is_written_down_and_told_and_is_no_unclean_election() -> None:
    cluster = stopped_in_order("t")
    register(cluster, 1, lost(cluster, "t"))
    (event,) = cluster.partition("t").withdrawals
    assert (event.replica, event.start, event.end, event.time_ms) == (1, 50, 100, 7)
    assert event.cause == CAUSES[Cause.SHORT]
    reported = [effect.text for effect in cluster.effects if isinstance(effect, Report)]
    assert f"broker 1 leaves ISR and ELR of t-0: {CAUSES[Cause.SHORT]}" in reported
    assert not [text for text in reported if "unclean" in text]
    assert cluster.partition("t").losses == ()


def test_a_retried_registration_of_the_same_incarnation_is_heard_too() -> None:
    """The first request got lost, or its answer; meanwhile more was found."""
    cluster = stopped_in_order("one", "two")
    epoch = register(cluster, 1, lost(cluster, "one")).broker_epoch
    assert register(cluster, 1, lost(cluster, "one", "two")).broker_epoch == epoch
    assert (cluster.partition("one").elr, cluster.partition("two").elr) == ((2,), (2,))
    assert len(cluster.partition("one").withdrawals) == 1


def test_a_fenced_broker_is_not_let_in_by_the_heartbeat_that_says_what_it_lost() -> None:
    cluster = stopped_in_order("t")
    register(cluster, 1)
    first = beat(cluster, 1, lost(cluster, "t"))
    assert (first.is_fenced, cluster.partition("t").elr, cluster.partition("t").leader) == (True, (2,), -1)
    assert not beat(cluster, 1, lost(cluster, "t")).is_fenced, "it says so until it is answered"
    assert cluster.partition("t").leader == -1


def test_a_leader_that_finds_damage_leaves_the_isr_and_another_leads() -> None:
    cluster = Cluster(brokers=3)
    cluster.create("t", (1, 2, 3))
    answer = beat(cluster, 1, lost(cluster, "t"))
    found = cluster.partition("t")
    assert (found.leader, found.isr, found.elr, answer.is_fenced) == (2, (2, 3), (), False)


def test_a_proposal_by_what_it_had_before_is_of_an_earlier_leader_epoch() -> None:
    """In sync or not, and in whatever order the leader's word and its own arrive."""
    cluster = Cluster(brokers=3)
    cluster.create("t", (1, 2, 3))
    for is_member in (True, False):
        before = cluster.partition("t")
        assert (3 in before.isr) == is_member
        beat(cluster, 3, lost(cluster, "t", time_ms=is_member))
        found = cluster.partition("t")
        assert (found.leader, found.leader_epoch, found.isr) == (1, before.leader_epoch + 1, (1, 2))
        late = cluster.alter("t", (1, 2, 3), leader_epoch=before.leader_epoch, partition_epoch=before.partition_epoch)
        assert late.error_code == ErrorCode.FENCED_LEADER_EPOCH
    reported = [effect.text for effect in cluster.effects if isinstance(effect, Report)]
    assert f"broker 3 stays out of ISR and ELR of t-0: {CAUSES[Cause.SHORT]}" in reported


@pytest.mark.parametrize("how", ["offline_log_dirs", "want_fence"])
def test_who_is_in_neither_is_heard_with_whatever_else_a_heartbeat_says(how: str) -> None:
    cluster = Cluster(brokers=3)
    cluster.create("t", (1, 2, 3))
    beat(cluster, 3, lost(cluster, "t"))
    said: dict[str, Any] = {how: cluster.image.brokers[3].log_dirs if how == "offline_log_dirs" else True}
    beat(cluster, 3, lost(cluster, "t", time_ms=8), **said)
    assert [event.time_ms for event in cluster.partition("t").withdrawals] == [7, 8]


def test_a_registration_does_not_name_replicas_that_are_in_neither() -> None:
    """It begins a broker epoch: nothing of before counts."""
    cluster = Cluster(brokers=3)
    cluster.create("t", (1, 2, 3))
    cluster.fence(3)
    before = cluster.partition("t")
    register(cluster, 3, lost(cluster, "t"))
    assert cluster.partition("t") == before


def test_what_is_said_again_does_nothing_again() -> None:
    cluster = Cluster(brokers=3)
    cluster.create("t", (1, 2, 3))
    beat(cluster, 1, lost(cluster, "t"))
    assert cluster.alter("t", (1, 2, 3)).error_code == 0
    before = len(cluster.log.records)
    beat(cluster, 1, lost(cluster, "t"))
    assert cluster.log.records[before:] == [], "a heartbeat that was under way for long"
    beat(cluster, 1, lost(cluster, "t", time_ms=8))
    assert cluster.partition("t").isr == (2, 3)


def test_a_request_without_it_takes_nothing_back() -> None:
    cluster = stopped_in_order("t")
    register(cluster, 1, lost(cluster, "t"))
    register(cluster, 1)
    beat(cluster, 1)
    assert cluster.partition("t").elr == (2,)


@pytest.mark.parametrize("how", ["offline_log_dirs", "want_fence", "want_shut_down"])
def test_with_whatever_else_a_heartbeat_says_the_lost_tail_counts(how: str) -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    cluster.fence(2)
    assert cluster.partition("t").isr == (1,)
    said: dict[str, Any] = {how: cluster.image.brokers[1].log_dirs if how == "offline_log_dirs" else True}
    while not beat(cluster, 1, lost(cluster, "t"), **said).is_fenced:
        pass
    found = cluster.partition("t")
    assert (found.isr, found.leader, len(found.withdrawals)) == ((), -1, 1)
    assert (1 in found.elr) == bool(found.losses), "unless it was elected uncleanly meanwhile"


def test_where_nobody_else_may_lead_it_is_elected_again_uncleanly_in_the_same_change() -> None:
    cluster = Cluster(brokers=1)
    cluster.create("t", (1,))
    before = cluster.partition("t").leader_epoch
    beat(cluster, 1, lost(cluster, "t"))
    found = cluster.partition("t")
    assert (found.leader, found.leader_epoch, found.leader_recovery_state) == (1, before + 1, RECOVERING)
    assert len(found.losses) == 1


def test_without_elr_the_last_member_of_the_isr_stays_and_leads_in_a_new_epoch() -> None:
    """As after an unclean stop: nobody knows who else would have what was committed."""
    cluster = Cluster(brokers=2, elr=False)
    cluster.create("t", (1, 2))
    cluster.fence(2)
    before = cluster.partition("t").leader_epoch
    beat(cluster, 1, lost(cluster, "t"))
    found = cluster.partition("t")
    assert (found.isr, found.leader, found.leader_epoch) == ((1,), 1, before + 1)
    assert len(found.withdrawals) == 1


def test_what_concerns_no_replica_is_nothing() -> None:
    cluster = Cluster(brokers=3)
    cluster.create("t", (1, 2))
    before = len(cluster.log.records)
    unknown = LostTopic(topic_id=b"unknown topic id", partitions=(LostPartition(),))
    assert beat(cluster, 3, (*lost(cluster, "t"), unknown)).error_code == 0
    assert cluster.log.records[before:] == []


def test_numbers_that_are_invalid_are_bounded() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    row = LostPartition(partition_index=0, start=-5, end=-9, cause=99, time_ms=1)
    beat(cluster, 1, (LostTopic(topic_id=cluster.image.topic_ids["t"], partitions=(row, row)),))
    (event,) = cluster.partition("t").withdrawals
    assert (event.start, event.end, event.cause) == (0, NO_END, CAUSES[Cause.UNKNOWN])


def test_a_snapshot_of_the_metadata_keeps_the_reason() -> None:
    cluster = stopped_in_order("t")
    register(cluster, 1, lost(cluster, "t"))
    again = type(cluster.image)()
    again.apply_all(list(cluster.image.records()))
    assert again.partition(cluster.at("t")) == cluster.partition("t")


def test_ten_thousand_replicas_fit_into_one_request() -> None:
    rows = tuple(LostPartition(partition_index=n, start=1, end=2, cause=1, time_ms=3) for n in range(10_000))
    request = BrokerHeartbeatRequest(broker_id=1, lost_replicas=(LostTopic(topic_id=b"t" * 16, partitions=rows),))
    said = encode_bytes(request, 2)
    assert len(said) < 400_000
    assert decode_all(BrokerHeartbeatRequest, 2, said).lost_replicas == request.lost_replicas
