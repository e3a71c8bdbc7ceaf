"""A storm: clients work while everything that a seed can think of goes wrong; then calm, and the reckoning.

Run many seeds with `python -m tests.whole.storm FIRST LAST`.

What is never done, since Kafka without eligible leader replicas does not promise to survive it (KIP-966): data that a
node has not synced is lost while others are missing from an ISR.
"""

import sys
import traceback
from itertools import combinations

from tests.whole.clients import Admin, Client, Committer, Consumer, Pipelined, Producer
from tests.whole.cluster import NODES, Violation, World

STORM_MS = 30_000


class Storm:
    """One seed in four cuts the power of anyone at any time: then only metadata must hold, and the healing."""

    def __init__(self, seed: int) -> None:
        self.world = world = World(seed)
        world.check_every = 8
        world.slow_sync_ms = world.rng.choice((100, 100, 1500))
        self.is_ruthless = world.laws.is_data_lost = seed % 4 == 3
        self.rng = world.rng
        self.admin = Admin(world, "admin")
        self.admin.begin()
        self.clients: list[Client] = [
            Producer(world, "pa", "orders", 0),
            Producer(world, "pb", "orders", 1, idempotent=False),
            Producer(world, "pc", "orders", 0, acks=1),
            Pipelined(world, "pd", "orders", 2),
            Producer(world, "pe", "brief", 0),
            # Not idempotent: trimming deletes what the leader knows of a producer's sequences.
            Producer(world, "pf", "loose", 0, idempotent=False),
            Consumer(world, "ca", "orders", 0),
            Consumer(world, "cb", "orders", 1),
            Consumer(world, "cc", "orders", 2),
            Consumer(world, "cd", "brief", 0),
            Committer(world, "ga", "orders"),
            Committer(world, "gb", "orders"),
        ]
        self.victim: int | None = None  # lost power: until it is back, only one other node may suffer
        self.other: int | None = None

    def run(self) -> None:
        world = self.world
        world.start()
        self.admin.errands += [self.admin.create("orders", 3), self.admin.create("brief")]
        self.admin.errands.append(self.admin.create("loose", min_insync_replicas="1"))
        world.run(700)
        for client in self.clients:
            client.begin()
        world.run(1500)
        end = world.now + STORM_MS
        while world.now < end:
            self.fault()
            world.run(self.rng.choice((5, 20, 50, 200, 500, 1000, 2500)))
        self.calm()

    def calm(self) -> None:
        world = self.world
        world.end_faults()
        writers: list[Client] = [self.admin, *[client for client in self.clients if isinstance(client, Producer)]]
        for client in writers:
            client.is_stopped = True
        world.finish(writers)
        world.settle()
        for client in self.clients:
            client.is_stopped = True
        world.finish(self.clients)
        for client in self.clients:
            if isinstance(client, Producer) and client.at.topic == "orders":
                world.tell(f"{client.name}: {client.acked} batches acknowledged, {client.sent} records sent")
                if not client.acked:
                    raise Violation(f"{client.name} got nothing through\n{world.told()}")

    # --- what goes wrong

    def may_suffer(self, node: int) -> bool:
        if self.victim is None:
            return True
        host = self.world.hosts[self.victim]
        if host.node is not None and host.node.broker is not None and host.node.broker.lifecycle.is_unfenced:
            self.victim = self.other = None
            return True
        if self.other is None and node != self.victim:
            self.other = node
        return node in (self.victim, self.other)

    def is_quiet(self) -> bool:
        world = self.world
        if world.network.cuts or world.network.slow or self.victim is not None or not world.is_whole():
            return False
        return all(not host.is_paused for host in world.hosts.values())

    def fault(self) -> None:
        kind = self.rng.choices(list(self.FAULTS), [weight for _, weight in self.FAULTS.values()])[0]
        self.FAULTS[kind][0](self)

    def someone(self) -> int | None:
        """A node that may suffer now; often the controller."""
        node = self.rng.choice(NODES)
        controller = self.world.controller()
        if controller is not None and self.rng.randrange(0, 4) == 0:
            node = controller.node_id
        return node if self.may_suffer(node) else None

    def kill(self) -> None:
        node = self.someone()
        if node is not None:
            host = self.world.hosts[node]
            host.kill()
            if self.rng.randrange(0, 2) and host.is_powered:
                self.world.time.later(self.rng.choice((0, 30, 300, 4000)), host.start)

    def start(self) -> None:
        for host in self.world.hosts.values():
            if not host.is_running and self.rng.randrange(0, 2):
                host.start()

    def power_cut(self) -> None:
        node = self.rng.choice(NODES)
        if self.is_ruthless:
            for one in NODES if self.rng.randrange(0, 3) == 0 else (node,):
                host = self.world.hosts[one]
                if host.is_powered:
                    host.power_cut()
                    self.world.time.later(self.rng.choice((50, 300, 1500, 5000)), host.start)
            return
        if not self.is_quiet():
            return
        host = self.world.hosts[node]
        host.power_cut()
        self.victim, self.other = node, None
        self.world.time.later(self.rng.choice((50, 300, 1500, 5000)), host.start)

    def shut_down(self) -> None:
        node = self.someone()
        if node is not None:
            self.world.hosts[node].shut_down()

    def pause(self) -> None:
        node = self.someone()
        if node is not None:
            host = self.world.hosts[node]
            host.pause()
            self.world.time.later(self.rng.choice((50, 700, 2500, 5000)), host.go_on)

    def cut(self) -> None:
        a, b = self.rng.choice(list(combinations(NODES, 2)))
        if self.rng.randrange(0, 2):
            a, b = b, a
        if self.may_suffer(a) or self.may_suffer(b):
            both = bool(self.rng.randrange(0, 2))
            self.world.tell(f"the network between n{a} and n{b} is cut{'' if both else ', one way'}")
            self.world.network.cut(f"n{a}", f"n{b}", both=both)

    def isolate(self) -> None:
        node = self.someone()
        if node is not None:
            both = bool(self.rng.randrange(0, 2))
            self.world.tell(f"n{node} is isolated{'' if both else ', one way'}")
            for name in sorted(self.world.network.stations):
                if name != f"n{node}" and (name[0] == "n" or self.rng.randrange(0, 2)):
                    self.world.network.cut(f"n{node}", name, both=both)

    def heal(self) -> None:
        self.world.tell("the network heals")
        self.world.network.heal()

    def slow(self) -> None:
        names = sorted(self.world.network.stations)
        a, b = self.rng.choice(names), self.rng.choice(names)
        self.world.network.slow[a, b] = self.rng.choice((20, 200, 1000))

    def break_off(self) -> None:
        connections = self.world.network.connections()
        for connection in self.rng.sample(connections, min(3, len(connections))):
            connection.break_off()

    def recreate(self) -> None:
        if not self.admin.errands:
            self.admin.errands += [self.admin.delete("brief"), self.admin.create("brief")]

    def configure(self) -> None:
        if not self.admin.errands:
            value = str(self.rng.choice((1, 2, 2, 3)))
            self.admin.errands.append(self.admin.configure("orders", "min.insync.replicas", value))

    def trim(self) -> None:
        if not self.admin.errands:
            self.admin.errands.append(self.admin.trim("loose"))

    def double(self) -> None:
        """A follower comes and goes, and while the ISR changes, so does the controller."""
        world, node, controller = self.world, self.someone(), self.world.controller()
        if node is None or controller is None or controller.node_id == node or not self.may_suffer(controller.node_id):
            return
        follower = world.hosts[node]
        self.rng.choice((follower.kill, follower.pause))()
        world.run(self.rng.choice((60, 300, 2000, 3000)))
        follower.go_on()
        follower.start()
        world.run(self.rng.randrange(0, 120))
        self.rng.choice((controller.kill, controller.pause, controller.shut_down))()
        world.run(self.rng.choice((0, 10, 700, 2500)))
        controller.go_on()
        controller.start()

    FAULTS = {  # noqa: RUF012 — a table of methods
        "kill": (kill, 6),
        "start": (start, 8),
        "power cut": (power_cut, 6),
        "shut down": (shut_down, 3),
        "pause": (pause, 4),
        "cut": (cut, 4),
        "isolate": (isolate, 3),
        "heal": (heal, 8),
        "slow": (slow, 2),
        "break off": (break_off, 5),
        "recreate": (recreate, 3),
        "configure": (configure, 2),
        "trim": (trim, 2),
        "double": (double, 5),
    }


def main(first: int, last: int) -> None:
    failed = []
    for seed in range(first, last):
        try:
            Storm(seed).run()
        except Exception as error:
            failed.append(seed)
            with open(f"storm-{seed}.txt", "w") as out:
                traceback.print_exc(file=out)
            print(seed, str(error).partition("\n")[0], flush=True)
    print(f"{first} to {last - 1}: {len(failed)} failed {failed[:20]}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
