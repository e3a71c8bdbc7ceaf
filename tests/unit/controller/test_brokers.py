"""Registration, heartbeats, fencing and shutdown."""

from typing import Any

import pytest
from tests.unit.controller.cluster import Cluster

from strandline.base.effects import Failure
from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.base.time import Instant
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.records import FeatureLevelRecord
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.brokers.broker_registration import Feature, Listener
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest

E = ErrorCode


def test_the_broker_epoch_is_the_offset_of_the_registration() -> None:
    cluster = Cluster()
    answer = cluster.register(1)
    assert answer.broker_epoch == cluster.log.next_offset - 1
    assert cluster.image.brokers[1].epoch == answer.broker_epoch
    assert cluster.image.brokers[1].fenced


REFUSED: list[tuple[str, dict[str, Any], ErrorCode]] = [
    ("another cluster", {"cluster_id": "elsewhere"}, E.INCONSISTENT_CLUSTER_ID),
    ("another incarnation lives", {"life": 2}, E.DUPLICATE_BROKER_REGISTRATION),
    ("a negative id", {"node": -1}, E.INVALID_REGISTRATION),
    ("a broker on ZooKeeper", {"node": 2, "is_migrating_zk_broker": True}, E.INVALID_REGISTRATION),
    ("a directory twice", {"node": 2, "log_dirs": (Uuid(b"d" * 16),) * 2}, E.INVALID_REGISTRATION),
    ("the directory of another broker", {"node": 2, "log_dirs": (Uuid(bytes([1]) * 16),)}, E.INVALID_REGISTRATION),
    (
        "the metadata.version is too new for it",
        {"node": 2, "features": (Feature(name="metadata.version", min_supported_version=1, max_supported_version=26),)},
        E.UNSUPPORTED_VERSION,
    ),
]


@pytest.mark.parametrize(("title", "fields", "error"), REFUSED, ids=[row[0] for row in REFUSED])
def test_registration_is_refused(title: str, fields: dict[str, Any], error: ErrorCode) -> None:
    cluster = Cluster(brokers=1)
    values = {"node": 1, **fields}
    node = values.pop("node")
    request = cluster.registration(abs(node), **values)
    if node < 0:
        request = cluster.registration(1, life=1, broker_id=node, log_dirs=())
    before = len(cluster.log.records)
    answer = cluster.ask(request, version=4)
    assert (answer.error_code, answer.broker_epoch) == (error, -1)
    assert len(cluster.log.records) == before


def test_the_same_incarnation_keeps_its_epoch_and_its_fencing_state() -> None:
    """T25: a lost response makes a broker register again; nothing of it may become invalid."""
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    epoch = cluster.epochs[1]
    answer = cluster.ask(cluster.registration(1, life=1, rack="moved"), version=4)
    assert answer.broker_epoch == epoch
    broker = cluster.image.brokers[1]
    assert (broker.epoch, broker.fenced, broker.rack) == (epoch, False, "moved")
    assert cluster.partition("t").leader == 1
    assert not cluster.beat(1).is_fenced


def test_another_incarnation_must_wait_until_the_session_has_ended() -> None:
    cluster = Cluster(brokers=1)
    cluster.wait(8_999)
    assert cluster.register(1).error_code == E.DUPLICATE_BROKER_REGISTRATION
    cluster.wait(1)
    assert cluster.image.brokers[1].fenced
    assert cluster.register(1).error_code == E.NONE


def test_a_fenced_broker_may_be_replaced_at_once() -> None:
    cluster = Cluster(brokers=1)
    cluster.fence(1)
    old = cluster.epochs[1]
    assert cluster.register(1).error_code == E.NONE
    assert cluster.epochs[1] > old


def test_a_stale_incarnation_is_rejected_and_does_not_prolong_the_session() -> None:
    cluster = Cluster(brokers=1)
    stale = BrokerHeartbeatRequest(broker_id=1, broker_epoch=cluster.epochs[1] - 1, current_metadata_offset=1 << 40)
    cluster.wait(5_000)
    assert cluster.ask(stale).error_code == E.STALE_BROKER_EPOCH
    cluster.wait(4_000)
    assert cluster.image.brokers[1].fenced


def test_an_unknown_broker_is_stale() -> None:
    cluster = Cluster()
    assert cluster.ask(BrokerHeartbeatRequest(broker_id=7, broker_epoch=1)).error_code == E.STALE_BROKER_EPOCH


def test_a_broker_is_unfenced_only_when_it_has_replayed_its_registration() -> None:
    cluster = Cluster()
    cluster.register(1)
    behind = cluster.beat(1, offset=cluster.epochs[1] - 1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    wanting = cluster.beat(1, want_fence=True)
    assert (wanting.is_caught_up, wanting.is_fenced) == (True, True)
    caught_up = cluster.beat(1, offset=cluster.epochs[1])
    assert (caught_up.is_caught_up, caught_up.is_fenced) == (True, False)


def test_heartbeats_do_not_go_through_the_log() -> None:
    cluster = Cluster(brokers=1)
    before = len(cluster.log.records)
    for _ in range(10):
        cluster.wait(8_000)
        cluster.beat(1)
    assert len(cluster.log.records) == before
    assert not cluster.image.brokers[1].fenced


def test_a_silent_broker_is_fenced_and_others_lead() -> None:
    cluster = Cluster(brokers=3)
    cluster.create("t", (1, 2, 3), (2, 3, 1))
    cluster.wait(5_000)
    cluster.beat(2), cluster.beat(3)
    cluster.wait(4_000)
    assert [cluster.image.brokers[n].fenced for n in (1, 2, 3)] == [True, False, False]
    assert (cluster.partition("t", 0).leader, cluster.partition("t", 0).isr) == (2, (2, 3))
    assert (cluster.partition("t", 1).leader, cluster.partition("t", 1).leader_epoch) == (2, 0)


def test_controlled_shutdown_moves_leaders_first() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    first = cluster.beat(1, want_shut_down=True)
    assert (first.should_shut_down, first.is_fenced) == (False, False)
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))
    second = cluster.beat(1, want_shut_down=True)
    assert (second.should_shut_down, second.is_fenced) == (True, True)


def test_permission_to_shut_down_waits_for_the_commit_of_the_moves() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    cluster.holds_commits = True
    assert cluster.beat(1, want_shut_down=True) is None
    assert cluster.beat(1, want_shut_down=True) is None
    cluster.holds_commits = False
    cluster.commit()
    assert cluster.answer_to(cluster.sequence).should_shut_down


def test_a_broker_that_leads_nothing_may_shut_down_at_once() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    assert cluster.beat(2, want_shut_down=True).should_shut_down
    assert cluster.partition("t").isr == (1,)


def test_a_shutdown_is_not_taken_back() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    cluster.beat(1, want_shut_down=True)
    assert not cluster.beat(1).should_shut_down
    assert cluster.image.brokers[1].in_controlled_shutdown


def test_a_broker_that_is_fenced_while_it_shuts_down_is_not_unfenced_by_a_heartbeat_that_has_overtaken_its_wish() -> (
    None
):
    """It would be asked for what it is about to stop serving."""
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    cluster.beat(1, want_shut_down=True)
    cluster.wait(60_000)
    cluster.beat(2)
    assert cluster.image.brokers[1].fenced
    assert cluster.beat(1).is_fenced
    assert cluster.image.brokers[1].fenced


def test_no_later_change_of_its_registration_takes_a_shutdown_back() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    cluster.beat(1, want_shut_down=True)
    cluster.wait(60_000)
    cluster.beat(2)
    assert cluster.image.brokers[1].fenced, "the record that fences it says nothing of its shutdown"
    assert cluster.image.brokers[1].in_controlled_shutdown


@pytest.mark.parametrize("is_fenced", [False, True])
def test_who_has_consent_to_stop_is_not_let_in_by_what_it_said_before(is_fenced: bool) -> None:
    """It leads nothing, so it has the consent at once; a heartbeat from before the wish may arrive behind it."""
    cluster = Cluster(brokers=2)
    if is_fenced:
        cluster.fence(2)
    assert cluster.beat(2, want_shut_down=True).should_shut_down
    assert cluster.beat(2).is_fenced
    broker = cluster.image.brokers[2]
    assert (broker.fenced, broker.in_controlled_shutdown) == (True, True)
    before = len(cluster.log.records)
    assert cluster.beat(2, want_shut_down=True).should_shut_down
    assert len(cluster.log.records) == before


def test_without_elr_the_only_replica_shuts_down_and_leads_again_after_its_return() -> None:
    cluster = Cluster(brokers=1, elr=False)
    cluster.create("t", (1,))
    cluster.beat(1, want_shut_down=True)
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (-1, (1,))
    assert cluster.beat(1, want_shut_down=True).should_shut_down
    cluster.join(1)
    assert (cluster.partition("t").leader, cluster.partition("t").leader_epoch) == (1, 2)


def test_a_new_incarnation_leaves_the_isr_in_the_batch_of_its_registration() -> None:
    """T6, T29: the session has ended unnoticed, so the old incarnation is still in sync when the new one registers."""
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    old = cluster.partition("t")
    cluster.controller.heartbeats.ends[1] = cluster.now
    cluster.register(1, previous=cluster.epochs[1])
    new = cluster.partition("t")
    assert (new.isr, new.leader) == ((2,), 2)
    assert (new.leader_epoch, new.partition_epoch) == (old.leader_epoch + 1, old.partition_epoch + 1)
    assert cluster.epochs[1] == cluster.log.next_offset - 1, "the epoch is the offset of the registration itself"


def test_an_unregistered_broker_is_forgotten() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    assert cluster.ask(UnregisterBrokerRequest(broker_id=1)).error_code == E.NONE
    assert 1 not in cluster.image.brokers
    assert cluster.partition("t").isr == (2,)
    assert cluster.beat(1).error_code == E.STALE_BROKER_EPOCH


def test_nobody_cannot_be_unregistered() -> None:
    answer = Cluster().ask(UnregisterBrokerRequest(broker_id=9))
    assert (answer.error_code, answer.error_message) == (
        E.BROKER_ID_NOT_REGISTERED,
        "Broker ID 9 is not currently registered",
    )


# --- evidence of death


def test_two_refused_connections_prove_a_broker_dead() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    cluster.disconnect(cluster.connection(1))
    (probe,) = cluster.probes()
    assert (probe.endpoint.host, probe.timeout_ms) == ("host1", 1000)
    cluster.probed(probe, Failure.REFUSED)
    assert not cluster.image.brokers[1].fenced
    cluster.wait(49)
    assert cluster.probes() == []
    cluster.wait(1)
    (again,) = cluster.probes()
    cluster.probed(again, Failure.REFUSED)
    assert cluster.image.brokers[1].fenced
    assert cluster.partition("t").leader == 2


@pytest.mark.parametrize("second", [None, Failure.TIMED_OUT, Failure.CLOSED])
def test_anything_else_proves_nothing(second: Failure | None) -> None:
    cluster = Cluster(brokers=1)
    cluster.disconnect(cluster.connection(1))
    cluster.probed(cluster.probes()[0], Failure.REFUSED)
    cluster.wait(50)
    cluster.probed(cluster.probes()[0], second)
    assert not cluster.image.brokers[1].fenced
    cluster.wait(8_949)
    assert not cluster.image.brokers[1].fenced
    cluster.wait(1)
    assert cluster.image.brokers[1].fenced, "the session goes on as usual"


def test_a_heartbeat_ends_the_suspicion() -> None:
    cluster = Cluster(brokers=1)
    cluster.disconnect(cluster.connection(1))
    (probe,) = cluster.probes()
    cluster.probed(probe, Failure.REFUSED)
    cluster.beat(1)
    cluster.wait(60)
    assert cluster.probes() == []
    cluster.probed(probe, Failure.REFUSED)
    assert not cluster.image.brokers[1].fenced


def test_a_probe_of_an_old_incarnation_says_nothing_about_the_new_one() -> None:
    cluster = Cluster(brokers=1)
    cluster.disconnect(cluster.connection(1))
    cluster.probed(cluster.probes()[0], Failure.REFUSED)
    cluster.wait(50)
    (second,) = cluster.probes()
    cluster.fence(1)
    cluster.join(1)
    cluster.probed(second, Failure.REFUSED)
    assert not cluster.image.brokers[1].fenced


def test_an_outcome_for_the_old_incarnation_does_not_answer_the_probe_of_the_new_one() -> None:
    cluster = Cluster(brokers=1)
    cluster.disconnect(cluster.connection(1))
    (old,) = cluster.probes()
    cluster.fence(1)
    cluster.join(1)
    cluster.disconnect(cluster.connection(1))
    (new,) = cluster.probes()
    cluster.probed(old, Failure.REFUSED)
    cluster.wait(50)
    assert cluster.probes() == []
    cluster.probed(new, None)
    assert not cluster.image.brokers[1].fenced


@pytest.mark.parametrize("connection", [1, 9999])
def test_other_connections_are_no_evidence(connection: int) -> None:
    cluster = Cluster(brokers=1)
    cluster.disconnect(connection)
    assert cluster.probes() == []


def test_an_old_connection_of_a_broker_that_has_a_new_one_is_no_evidence() -> None:
    cluster = Cluster(brokers=1)
    beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=cluster.epochs[1], current_metadata_offset=1 << 40)
    cluster.ask(beat, connection=77)
    cluster.disconnect(cluster.connection(1))
    assert cluster.probes() == []
    cluster.disconnect(77)
    assert len(cluster.probes()) == 1


def test_a_killed_process_that_still_seemed_to_listen_is_looked_at_again() -> None:
    """Its connections die one by one: the first probe may reach a listener that is closed a moment later."""
    cluster = Cluster(brokers=2)
    cluster.disconnect(cluster.connection(1))
    cluster.probed(cluster.probes()[0], None)
    for _ in range(2):
        assert not cluster.image.brokers[1].fenced
        cluster.wait(500)
        cluster.probed(cluster.probes()[0], Failure.REFUSED)
    assert cluster.image.brokers[1].fenced


def test_a_fenced_broker_is_not_probed() -> None:
    cluster = Cluster(brokers=1)
    cluster.fence(1)
    cluster.disconnect(cluster.connection(1))
    assert cluster.probes() == []


# --- a fast restart, and a stalled controller


def test_a_fast_restart_need_not_wait_for_the_session_of_its_former_self() -> None:
    """The connection is closed, and the new process holds the endpoint and the directory: the old one is gone (T29)."""
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    cluster.disconnect(cluster.connection(1))
    assert cluster.register(1).error_code == E.NONE
    assert (cluster.partition("t").isr, cluster.partition("t").leader) == ((2,), 2)


@pytest.mark.parametrize(
    "fields", [{"listeners": (Listener(name="PLAINTEXT", host="other", port=9092),)}, {"log_dirs": (Uuid(b"x" * 16),)}]
)
def test_another_process_elsewhere_waits_although_the_connection_is_closed(fields: dict[str, Any]) -> None:
    cluster = Cluster(brokers=1)
    cluster.disconnect(cluster.connection(1))
    request = cluster.registration(1, life=2, **fields)
    assert cluster.ask(request, version=4).error_code == E.DUPLICATE_BROKER_REGISTRATION


def test_a_stalled_controller_listens_before_it_fences() -> None:
    cluster = Cluster(brokers=2)
    cluster.now = Instant(cluster.now + 60_000)
    cluster.take(cluster.controller.expire(cluster.now))
    cluster.beat(1)
    cluster.wait(999)
    assert not cluster.image.brokers[2].fenced
    cluster.wait(1)
    assert [cluster.image.brokers[n].fenced for n in (1, 2)] == [False, True]


# --- clean and unclean shutdown (KIP-966): with ELR, the difference is whether a log may lack what it acknowledged


def with_elr(static: dict[str, ConfigValue] | None = None, **settings: Any) -> Cluster:
    """Broker 1 leads t alone, and broker 2 is eligible, because the ISR is below min ISR."""
    cluster = Cluster(brokers=2, static={"min.insync.replicas": 2, **(static or {})}, **settings)
    feature = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    cluster.controller.write([feature], cluster.now)
    cluster.create("t", (1, 2))
    cluster.fence(2)
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((1,), (2,))
    return cluster


def test_a_broker_that_stopped_cleanly_stays_eligible() -> None:
    cluster = with_elr()
    cluster.register(2, previous=cluster.epochs[2])
    assert cluster.partition("t").elr == (2,)
    cluster.fence(1)
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((), (1, 2))
    cluster.beat(2)
    assert (cluster.partition("t").leader, cluster.partition("t").isr, cluster.partition("t").elr) == (2, (2,), (1,))


@pytest.mark.parametrize("previous", [-1, 1])
def test_a_broker_that_may_have_lost_its_tail_is_no_longer_eligible(previous: int) -> None:
    """T5: the comparison must be on; the broker knows no epoch, or an old one (T28)."""
    cluster = with_elr()
    before = cluster.partition("t").partition_epoch
    cluster.register(2, previous=previous)
    assert (cluster.partition("t").elr, cluster.partition("t").last_known_elr) == ((), (2,))
    assert cluster.partition("t").partition_epoch == before + 1
    cluster.beat(2)
    cluster.fence(1)
    assert cluster.partition("t").leader == -1, "broker 2 must not lead: it may miss what was committed"


def test_an_unregistered_broker_is_eligible_nowhere() -> None:
    """L4: an id that never returns must not be waited for."""
    cluster = with_elr()
    cluster.ask(UnregisterBrokerRequest(broker_id=2))
    assert cluster.partition("t").elr == ()
