"""The simulator's clients, workloads and process faults against real processes.

A client is a generator that touches nothing, so here each one is driven by a thread with blocking sockets.
"""

import socket
import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

from tests.receiving import receive

from strandline.base.effects import Endpoint
from strandline.base.ids import TopicIdPartition, Uuid
from strandline.history.operation import History, Operation
from strandline.sim.clients.client import Client, Request
from strandline.testing.local_cluster import LocalCluster, NodeProcess
from strandline.wire.api import response_of
from strandline.wire.frame import decode_response, encode_request


class SharedHistory(History):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def record(self, operation: Operation) -> None:
        with self.lock:
            super().record(operation)


class RealStage:
    """Sees nothing but what clients are told."""

    def __init__(self, cluster: LocalCluster, seed: int) -> None:
        self.cluster = cluster
        self.seed = seed
        self.history = SharedHistory()
        self.began = time.monotonic()
        self.threads: list[threading.Thread] = []
        self.broken: list[BaseException] = []
        self.clients: list[Client] = []

    @property
    def bootstrap(self) -> tuple[Endpoint, ...]:
        found = [node.address.rpartition(":") for node in self.cluster.nodes]
        return tuple(Endpoint(host, int(port)) for host, _, port in found)

    def now_ms(self) -> int:
        return int((time.monotonic() - self.began) * 1000)

    def wall_ms(self) -> int:
        return int(time.time() * 1000)

    def random(self, name: str) -> Random:
        return Random(f"{self.seed} {name}")

    def note(self, client: str, text: str) -> None:
        pass

    def acknowledged(self, at: TopicIdPartition, offset: int, values: tuple[bytes, ...]) -> None:
        pass

    def consumed(self, at: TopicIdPartition, end: int) -> None:
        pass

    def suspect(self, at: TopicIdPartition, why: str) -> None:
        raise AssertionError(why)

    def deleted(self, topic_id: Uuid) -> None:
        pass

    def is_exceeded(self, topic: str) -> bool:
        return False

    def was_removed(self, group: str, topic: str, partition: int) -> bool:
        return False

    # --- running clients

    def enter(self, client: Client) -> None:
        self.clients.append(client)
        thread = threading.Thread(target=self.live, args=(client,), daemon=True)
        self.threads.append(thread)
        thread.start()

    def live(self, client: Client) -> None:
        life, answer, lines = client.live(), None, Lines()
        try:
            while True:
                wish = life.send(answer)
                if isinstance(wish, int):
                    time.sleep(wish / 1000)
                    answer = None
                else:
                    answer = [lines.ask(one) for one in wish] if isinstance(wish, list) else lines.ask(wish)
        except StopIteration:
            client.is_done = True
        except BaseException as error:
            self.broken.append(error)
        finally:
            lines.close()

    def finish(self, clients: list[Client], within_s: float = 60) -> None:
        for client in clients:
            client.is_stopped = True
        end = time.monotonic() + within_s
        while not all(client.is_done for client in clients):
            assert not self.broken, self.broken
            assert time.monotonic() < end, [client.name for client in clients if not client.is_done]
            time.sleep(0.02)


class Lines:
    """One client's connections, one to each address, each until something goes wrong with it."""

    def __init__(self) -> None:
        self.open: dict[tuple[str, int], socket.socket] = {}

    def ask(self, request: Request) -> Any:
        """The answer, or None."""
        at = (request.to.host, request.to.port)
        message, version = request.message, request.version
        try:
            line = self.open.get(at)
            if line is None:
                line = self.open[at] = socket.create_connection(at, timeout=1)
            line.settimeout(request.timeout_ms / 1000)
            line.sendall(b"".join(encode_request(message, version, 1, "stage")))
            if getattr(message, "acks", -1) == 0:
                return None
            frame = receive(line, int.from_bytes(receive(line, 4), "big"))
        except OSError:
            broken = self.open.pop(at, None)
            if broken is not None:
                broken.close()
            return None
        return decode_response(response_of(message.api_key), version, memoryview(frame))[1]

    def close(self) -> None:
        for line in self.open.values():
            line.close()


class RealMachine:
    """A process, with the simulator's words for what may happen to it."""

    is_powered = True

    def __init__(self, node: NodeProcess) -> None:
        self.node = node
        self.name = f"n{node.node_id}"
        self.is_paused = False

    @property
    def is_running(self) -> bool:
        return self.node.running

    def start(self) -> None:
        if not self.node.running:
            self.node.start()

    def kill(self) -> None:
        if self.node.running:
            self.node.kill()

    def pause(self) -> None:
        if self.node.running and not self.is_paused:
            self.is_paused = True
            self.node.pause()

    def go_on(self) -> None:
        if self.is_paused and self.node.running:
            self.node.resume()
        self.is_paused = False

    def shut_down(self) -> None:
        if self.node.running and not self.is_paused:
            self.node.terminate()


class RealFaultInjector:
    """What the simulator's process faults ask for: machines, and time that passes by itself."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.machines = {node.node_id: RealMachine(node) for node in cluster.nodes}
        self.due: list[tuple[float, Callable[[], object]]] = []

    @property
    def world(self) -> "RealFaultInjector":
        return self

    def someone(self, rng: Random) -> RealMachine:
        return rng.choice(list(self.machines.values()))

    # A real kill takes nothing from the page cache: even of replicas that are all believed to have lost something, the
    # recovery finds one that has everything.
    someone_to_kill = someone

    def shut_down(self, machine: RealMachine) -> None:
        machine.shut_down()

    def later(self, span_ms: int, act: Callable[[], object]) -> None:
        self.due.append((time.monotonic() + span_ms / 1000, act))

    def run(self, span_s: float) -> None:
        end = time.monotonic() + span_s
        while time.monotonic() < end:
            now = time.monotonic()
            ready = [act for at, act in self.due if at <= now]
            self.due = [entry for entry in self.due if entry[0] > now]
            for act in ready:
                act()
            time.sleep(0.01)

    def end(self) -> None:
        for machine in self.machines.values():
            machine.go_on()
            machine.start()
