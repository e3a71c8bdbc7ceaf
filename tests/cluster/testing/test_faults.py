"""Each fault does to real nodes what it says, and is over with its block."""

import subprocess
import time
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Producer
from tests.cluster.driving import until

from strandline.testing import Cluster, cluster
from strandline.testing.faults.calls import FaultCalls
from strandline.testing.faults.fault import Fault
from strandline.testing.health import NotSo, is_fenced, live_brokers

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("breakable"), pytest.mark.timeout(180)]
QUICK = {"retry.backoff.ms": 50, "reconnect.backoff.max.ms": 200, "socket.timeout.ms": 5000, "log_level": 0}


@pytest.fixture
def topic(strandline: Cluster) -> str:
    return strandline.create_topic(f"t-{uuid.uuid4().hex[:8]}")


def producer(strandline: Cluster) -> Producer:
    return Producer(strandline.client_config(**QUICK))


def written(writer: Producer, topic: str, timeout_s: float = 40.0) -> str:
    """Empty, or the error that the record got."""
    errors: list[str] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        errors.append(error.name() if error else "")

    writer.produce(topic, b"x", partition=0, on_delivery=delivered)
    writer.flush(timeout_s)
    return errors[0] if errors else "no answer"


@pytest.mark.parametrize("name", ["kill", "stop", "pause", "lose_power", "isolate", "expire_session"])
def test_without_its_leader_a_partition_gets_another_one_and_the_node_comes_back(
    strandline: Cluster, topic: str, name: str
) -> None:
    writer = producer(strandline)
    assert written(writer, topic) == ""
    leader = strandline.leader(topic)
    with getattr(strandline, name)(leader):
        until(lambda: strandline.leader(topic) != leader)
        assert strandline.node(leader).answers == (name == "isolate")
        assert written(producer(strandline), topic) == ""
    strandline.wait_until_healthy()
    assert sorted(strandline.in_sync(topic)) == [1, 2, 3]


def test_a_loss_of_power_costs_what_was_not_synced_and_a_kill_does_not(strandline: Cluster, topic: str) -> None:
    assert written(producer(strandline), topic) == ""
    node = strandline.node(next(node for node in strandline.node_ids if node != strandline.leader(topic)))
    segment = node.data_path / f"{topic}-0" / "00000000000000000000.log"
    size = segment.stat().st_size
    assert size
    strandline.kill(node.node_id)
    assert segment.stat().st_size == size
    strandline.heal()
    assert written(producer(strandline), topic) == ""
    strandline.lose_power(node.node_id)
    assert segment.stat().st_size < 2 * size


def test_a_restart_is_over_when_the_call_returns(strandline: Cluster) -> None:
    before = strandline.node(1).pid
    assert strandline.restart(1).is_over
    assert strandline.node(1).pid != before
    assert strandline.node(1).listens()


@pytest.mark.parametrize("name", ["fill_disk", "fail_disk"])
def test_a_node_without_its_disk_is_out_until_the_disk_is_repaired(strandline: Cluster, topic: str, name: str) -> None:
    leader = strandline.leader(topic)
    words = {"fill_disk": "disk full: ", "fail_disk": "Input/output error"}[name]
    before = strandline.node(leader).log_path.read_text().count(words)
    with getattr(strandline, name)(leader):
        assert written(producer(strandline), topic) == ""
        until(lambda: strandline.node(leader).log_path.read_text().count(words) > before)
        assert strandline.leader(topic) != leader
    strandline.wait_until_healthy()


def test_what_is_cut_one_way_still_passes_the_other(strandline: Cluster, topic: str) -> None:
    leader = strandline.leader(topic)
    follower = next(node for node in strandline.node_ids if node != leader)
    writer = producer(strandline)
    with strandline.cut("clients", leader):
        assert written(writer, topic, 1.0) == "no answer"
    assert writer.flush(30) == 0
    with strandline.cut(leader, follower):
        assert written(writer, topic) == "", "the others are enough"
    strandline.wait_until_healthy()


def test_a_slow_node_answers_late(strandline: Cluster, topic: str) -> None:
    writer = producer(strandline)
    assert written(writer, topic) == ""
    with strandline.slow(strandline.leader(topic), 0.3):
        began = time.monotonic()
        assert written(writer, topic) == ""
        assert time.monotonic() - began >= 0.3


def test_an_isr_shrinks_and_writers_that_want_more_are_refused(strandline: Cluster, topic: str) -> None:
    leader = strandline.leader(topic)
    with strandline.shrink_isr(topic, to=1):
        assert strandline.in_sync(topic) == [leader]
        refused = Producer(strandline.client_config(**QUICK, message_timeout_ms=1500, retries=0))
        assert written(refused, topic) in ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
        assert f"{topic}-0: under min ISR" in strandline.explain()
        assert topic in strandline.why_not_healthy()
        assert not is_fenced(strandline.nodes, strandline.node(leader % 3 + 1)), "only its copying is cut"
    strandline.wait_until_healthy()
    assert strandline.explain() == ""


def test_leaders_and_coordinators_move_and_move_back(strandline: Cluster, topic: str) -> None:
    leader = strandline.leader(topic)
    target = leader % 3 + 1
    with strandline.move_leader(topic, to=target):
        assert strandline.leader(topic) == target
    assert strandline.leader(topic) == leader
    with pytest.raises(NotSo, match="cannot be led by node 9"):
        strandline.move_leader(topic, to=9)
    transactional = Producer(strandline.client_config(**QUICK, transactional_id="payments"))
    transactional.init_transactions(30)
    before = strandline.coordinator(transactional_id="payments")
    with strandline.move_coordinator(transactional_id="payments"):
        assert strandline.coordinator(transactional_id="payments") not in (0, before)
        transactional.begin_transaction()
        transactional.produce(topic, b"x")
        transactional.commit_transaction(30)


def test_an_expired_session_is_seen_by_the_others_at_once(strandline: Cluster) -> None:
    with strandline.expire_session(2):
        assert 2 not in live_brokers(strandline.node(1))
        assert 2 not in live_brokers(strandline.node(3))


def test_chaos_breaks_what_its_seed_says_and_leaves_a_cluster_that_heals(
    strandline: Cluster, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    history = strandline.watch(producer(strandline), idempotent=False)
    (writer,) = history.clients
    with strandline.chaos(seed=3, faults=("kill", "pause", "isolate"), pause_s=0.1) as chaos:
        until(lambda: writer.produce(topic, b"x") or writer.poll(0.01) or len(chaos.story) >= 2)
    assert "chaos(seed=3)" in capsys.readouterr().err
    strandline.heal()
    assert writer.flush(60) == 0
    assert history.check().acknowledged > 0
    assert not strandline.is_disturbed


def test_heal_repairs_whatever_was_done(strandline: Cluster) -> None:
    strandline.kill(1)
    strandline.slow(2)
    strandline.cut(3, "clients")
    assert strandline.is_disturbed
    assert strandline.why_not_healthy() == "node 1 does not run"
    strandline.heal()
    assert (strandline.is_disturbed, strandline.why_not_healthy()) == (False, "")


def test_every_fault_has_two_names() -> None:
    """One for the call and one for the block."""
    names: dict[object, list[str]] = {}
    for name, value in vars(FaultCalls).items():
        if getattr(value, "__annotations__", {}).get("return") is Fault and name != "caused":
            names.setdefault(value, []).append(name)
    assert len(names) == 15
    assert [pair for pair in names.values() if len(pair) != 2] == []


# --- with TLS


@pytest.fixture(scope="module")
def secured() -> Iterator[Cluster]:
    with cluster(nodes=1, secure=True) as found:
        yield found


def serial_shown(strandline: Cluster) -> str:
    """Of the certificate that a client sees."""
    shown = subprocess.run(
        ["openssl", "s_client", "-connect", strandline.bootstrap], input="", capture_output=True, text=True, check=False
    )
    serial = ["openssl", "x509", "-noout", "-serial"]
    return subprocess.run(serial, input=shown.stdout, capture_output=True, text=True, check=True).stdout


def test_a_certificate_is_rotated_under_clients_that_go_on(secured: Cluster) -> None:
    topic = secured.create_topic("alice-orders")
    writer = Producer(secured.client_config(user="alice"))
    assert written(writer, topic) == ""
    before = serial_shown(secured)
    secured.rotate_certificate(1)
    assert serial_shown(secured) != before
    assert written(writer, topic) == ""
    assert written(Producer(secured.client_config(user="alice")), topic) == ""
    assert {request.api for request in secured.requests(client_id="rdkafka")} >= {"Produce", "SaslAuthenticate"}


def test_without_tls_there_is_no_certificate_to_rotate(strandline: Cluster) -> None:
    with pytest.raises(ValueError, match="has no certificates"):
        strandline.rotate_certificate(1)
