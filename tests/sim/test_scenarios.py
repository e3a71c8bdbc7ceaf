"""Whole clusters in situations that once went wrong, or that must never."""

from collections.abc import Callable

import pytest
from tests.sim.play import SETTINGS, Play

from strandline.base.effects import Caller, Effect, Received, Reply, ReplyTo, Send
from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.base.time import Instant
from strandline.broker.node import Node
from strandline.sim.clients.consumer import Consumer
from strandline.sim.clients.producer import Producer
from strandline.sim.world.options import Options
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest


def test_without_faults_the_cluster_works_and_its_replicas_are_equal() -> None:
    play = Play()
    play.run(5000)
    play.end()


def test_the_leader_is_killed_again_and_again() -> None:
    play = Play()
    for _ in range(5):
        host = play.leader()
        host.kill()
        play.run(1500)
        host.start()
        play.heal()
    play.end()


def test_the_leader_is_restarted_within_its_session_and_without_a_pause() -> None:
    play = Play()
    for _ in range(5):
        host = play.leader()
        host.kill()
        host.start()
        play.heal()
        play.run(200)
    play.end()


def test_one_node_after_another_loses_power() -> None:
    play = Play()
    for host in (*play.machines, *play.machines):
        host.power_cut()
        play.run(400)
        host.start()
        play.heal()
        play.run(100)
    play.end()


def test_the_controller_dies_while_isrs_shrink_and_grow() -> None:
    play = Play()
    for _ in range(4):
        follower = next(h for h in play.machines if h is not play.leader())
        follower.kill()
        play.run(60)
        controller = play.world.controller()
        if controller is not None:
            controller.kill()
            play.run(5)
            controller.start()
        follower.start()
        play.heal()
        play.run(100)
    play.end()


def test_an_old_leader_that_cannot_reach_the_controller_acknowledges_nothing_that_is_lost() -> None:
    play = Play()
    leader = play.leader()
    for host in play.machines:
        if host is not leader:
            play.world.network.cut(leader.name, host.name)
    play.run(8000)
    play.end()


def test_a_controller_that_stood_still_past_its_own_timers_goes_on_as_a_broker() -> None:
    """Once its first timer wrote to a log that its second had just lost the leadership of."""
    for span in (1100, 2000, 3100, 4000, 8000):
        play = Play(seed=span)
        controller = play.world.controller()
        assert controller is not None
        other = next(host for host in play.machines if host is not controller)
        other.kill()
        controller.pause()
        play.run(span)
        controller.go_on()
        play.run(500)
        play.end()


def test_all_nodes_are_killed_at_once_and_metadata_survives_with_a_snapshot_after_every_batch() -> None:
    """Once a snapshot after a leader's first record was named after the epoch before, and the log behind it went."""
    play = Play(metadata_log_max_record_bytes_between_snapshots="1")
    for _ in range(4):
        for host in play.machines:
            host.kill()
        for host in play.machines:
            host.start()
        play.heal()
        play.run(300)
    play.end()


def test_a_topic_is_deleted_and_created_again_while_nodes_come_and_go() -> None:
    play = Play()
    play.admin.errands.append(play.admin.create("brief"))
    brief = TopicPartition("brief", 0)
    play.enter(Producer(play.scene, "pe", brief), Consumer(play.scene, "cd", brief))
    for host in play.machines:
        play.run(1500)
        play.admin.errands += [play.admin.delete("brief"), play.admin.create("brief")]
        play.run(30)
        host.kill()
        play.run(400)
        host.start()
        play.heal()
    play.end()


def test_a_rolling_restart_is_clean() -> None:
    play = Play()
    for host in play.machines:
        host.shut_down()
        play.until("the node has left", lambda host=host: not host.is_running)
        host.start()
        play.heal()
    play.end()


def test_the_quorum_hears_that_its_leader_leaves_before_that_makes_its_logs_durable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With thousands of logs it takes seconds: longer than to elect another."""
    play = Play()
    play.run(500)
    (host,) = [host for host in play.machines if host.node is not None and host.node.quorum.is_leader]
    node = host.node
    assert node is not None and node.broker is not None
    perform, stop = host.perform, node.broker.stop
    done: list[str] = []

    def performed(effect: Effect) -> None:
        done.append(type(effect.message).__name__ if isinstance(effect, Send) else type(effect).__name__)
        perform(effect)

    def stopped(now: Instant) -> list[Effect]:
        done.append("stop")
        return stop(now)

    monkeypatch.setattr(host, "perform", performed)
    monkeypatch.setattr(node.broker, "stop", stopped)
    host.shut_down()
    play.until("the node has left", lambda: not host.is_running)
    assert done.count("stop") == 1
    assert done.index("EndQuorumEpochRequest") < done.index("stop") < done.index("Halt")
    play.end()


@pytest.mark.parametrize("seed", range(6))
def test_what_a_killed_process_left_in_memory_is_durable_after_the_next_clean_stop(seed: int) -> None:
    """Once the file with a log's topic id, written by the process that was killed, was never synced by the next one:
    after a clean stop a power loss could take it, and with it the whole log."""
    play = Play(seed, log_flush_offset_checkpoint_interval_ms="60000")
    for host in play.machines:
        host.kill()
        host.start()
        play.heal()
    for host in play.machines:
        host.shut_down()
        play.until("the node has left", lambda host=host: not host.is_running)
        before = host.disk.read_file("/d0/orders-0/00000000000000000000.log")
        host.power_cut()
        host.start()
        assert host.node is not None and host.node.broker is not None
        hosted = host.node.broker.replicas.host.partitions.named("orders", 0)
        assert hosted is not None and hosted.log.size_bytes >= len(before or b"") > 0
        play.heal()
    play.end()


def test_a_new_replica_of_a_log_that_starts_inside_a_batch_catches_up() -> None:
    """DeleteRecords takes any offset. Once a follower with an empty log refused the batch that holds it, for ever."""
    play = Play()
    play.run(1000)
    follower = next(machine for machine in play.machines if machine is not play.leader())
    truth = play.world.laws.partitions.truths[play.at()]
    inside = next(base + 1 for base, end in zip(truth.bases, truth.nexts, strict=True) if end > base + 1)
    play.admin.wish(lambda: play.admin.trim("orders", inside))
    play.run(500)
    follower.kill()
    play.world.damage.lost(follower.node_id, "has a new disk")
    follower.replace_disk("/d0")
    follower.start()
    play.heal()
    play.end()


def test_the_only_voter_decides_nothing_more_once_it_has_resigned() -> None:
    """Nobody is told of its resignation, so nothing came between that and its stop but what clients asked."""
    play = Play(options=Options(settings=SETTINGS, controllers=1, brokers=3))
    (host,) = [machine for machine in play.machines if machine.node is not None and machine.node.quorum.is_leader]
    perform, answers = host.run, []
    request = CreateTopicsRequest(topics=(CreatableTopic(name="x", num_partitions=1, replication_factor=1),))

    def run(event: object, act: Callable[[Node, Instant], list[Effect]] | None = None) -> None:
        perform(event, act)
        if host.node is not None and host.node.is_parting and not answers:
            asked = Received(ReplyTo(77, 1, 1, 19, 7), Caller("admin", "h", "CONTROLLER"), request)
            answers.extend(host.node.step(asked, host.clock.now()))

    host.run = run  # type: ignore[method-assign]
    host.shut_down()
    play.until("the node has left", lambda: not host.is_running)
    (reply,) = [effect for effect in answers if isinstance(effect, Reply)]
    assert reply.message.topics[0].error_code == ErrorCode.NOT_CONTROLLER
