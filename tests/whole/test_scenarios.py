"""Whole clusters in situations that once went wrong, or that must never."""

from tests.whole.clients import Admin, Client, Committer, Consumer, Producer
from tests.whole.cluster import NODES, World


class Play:
    """Three nodes, a topic, an idempotent producer with acks=all, one with acks=1, and a consumer."""

    def __init__(self, seed: int = 1, **settings: str) -> None:
        self.world = World(seed, {key.replace("_", "."): value for key, value in settings.items()})
        self.world.start()
        self.admin = Admin(self.world, "admin")
        self.admin.begin()
        self.admin.errands.append(self.admin.create("orders"))
        self.world.run(300)
        self.clients: list[Client] = [
            Producer(self.world, "pa", "orders"),
            Producer(self.world, "pb", "orders", acks=1),
            Consumer(self.world, "ca", "orders"),
            Committer(self.world, "ga", "orders"),
        ]
        for client in self.clients:
            client.begin()
        self.world.run(1000)

    def end(self) -> None:
        world = self.world
        world.end_faults()
        self.admin.is_stopped = True
        for client in self.clients:
            client.is_stopped = isinstance(client, Producer)
        world.finish([self.admin, *self.clients[:2]])
        world.settle()
        for client in self.clients:
            client.is_stopped = True
        world.finish(self.clients)
        assert isinstance(self.clients[0], Producer) and self.clients[0].acked > 10


def test_without_faults_the_cluster_works_and_its_replicas_are_equal() -> None:
    play = Play()
    play.world.run(5000)
    play.end()


def test_the_leader_is_killed_again_and_again() -> None:
    play = Play()
    for _ in range(5):
        host = play.world.leader_of("orders")
        host.kill()
        play.world.run(1500)
        host.start()
        play.world.run_until("the cluster is whole", play.world.is_whole)
    play.end()


def test_the_leader_is_restarted_within_its_session_and_without_a_pause() -> None:
    play = Play()
    for _ in range(5):
        host = play.world.leader_of("orders")
        host.kill()
        host.start()
        play.world.run_until("the cluster is whole", play.world.is_whole)
        play.world.run(200)
    play.end()


def test_one_node_after_another_loses_power() -> None:
    play = Play()
    for node in (*NODES, *NODES):
        host = play.world.hosts[node]
        host.power_cut()
        play.world.run(400)
        host.start()
        play.world.run_until("the cluster is whole", play.world.is_whole)
        play.world.run(100)
    play.end()


def test_the_controller_dies_while_isrs_shrink_and_grow() -> None:
    play = Play()
    for _ in range(4):
        follower = next(h for h in play.world.hosts.values() if h is not play.world.leader_of("orders"))
        follower.kill()
        play.world.run(60)
        controller = play.world.controller()
        if controller is not None:
            controller.kill()
            play.world.run(5)
            controller.start()
        follower.start()
        play.world.run_until("the cluster is whole", play.world.is_whole)
        play.world.run(100)
    play.end()


def test_an_old_leader_that_cannot_reach_the_controller_acknowledges_nothing_that_is_lost() -> None:
    play = Play()
    leader = play.world.leader_of("orders")
    for host in play.world.hosts.values():
        if host is not leader:
            play.world.network.cut(leader.name, host.name)
    play.world.run(8000)
    play.end()


def test_a_controller_that_stood_still_past_its_own_timers_goes_on_as_a_broker() -> None:
    """Once its first timer wrote to a log that its second had just lost the leadership of."""
    for span in (1100, 2000, 3100, 4000, 8000):
        play = Play(seed=span)
        controller = play.world.controller()
        assert controller is not None
        other = next(host for host in play.world.hosts.values() if host is not controller)
        other.kill()
        controller.pause()
        play.world.run(span)
        controller.go_on()
        play.world.run(500)
        play.end()


def test_all_nodes_are_killed_at_once_and_metadata_survives_with_a_snapshot_after_every_batch() -> None:
    """Once a snapshot after a leader's first record was named after the epoch before, and the log behind it went."""
    play = Play(metadata_log_max_record_bytes_between_snapshots="1")
    for _ in range(4):
        for host in play.world.hosts.values():
            host.kill()
        for host in play.world.hosts.values():
            host.start()
        play.world.run_until("the cluster is whole", play.world.is_whole)
        play.world.run(300)
    play.end()


def test_a_topic_is_deleted_and_created_again_while_nodes_come_and_go() -> None:
    play = Play()
    play.admin.errands.append(play.admin.create("brief"))
    producer, consumer = Producer(play.world, "pe", "brief"), Consumer(play.world, "cd", "brief")
    for client in (producer, consumer):
        play.clients.append(client)
        client.begin()
    for node in NODES:
        play.world.run(1500)
        play.admin.errands += [play.admin.delete("brief"), play.admin.create("brief")]
        play.world.run(30)
        play.world.hosts[node].kill()
        play.world.run(400)
        play.world.hosts[node].start()
        play.world.run_until("the cluster is whole", play.world.is_whole)
    play.end()


def test_a_rolling_restart_is_clean() -> None:
    play = Play()
    for node in NODES:
        host = play.world.hosts[node]
        host.shut_down()
        play.world.run_until("the node has left", lambda host=host: not host.is_running)  # type: ignore[misc]
        host.start()
        play.world.run_until("the cluster is whole", play.world.is_whole)
    play.end()
