"""Which brokers are alive? Sessions, and the evidence of death that ends one early.

A broker's session lasts `session_timeout_ms` after its last heartbeat. When the connection of its heartbeats closes,
its listener is probed, and again and again until the broker is heard of: two refused connections in a row, 50 ms apart,
prove that no process listens there, and the broker need not be waited for. Everything else (accepted, timed out,
broken) proves nothing, and the session goes on: a blip or a slow node is never fenced early. One look is not enough: a
process that is being killed loses its connections one by one, and may still seem to listen when the first is gone.

Heartbeats do not go through the log, so a new controller knows of none: it opens a session for every unfenced broker
(KAFKA-18138) and probes each at once.

A controller that was itself stalled has heard nobody, and that is no evidence against anybody: it listens for a moment
before it believes that sessions have ended.

Invariants:
  - a probe belongs to one incarnation; a heartbeat of that incarnation ends it;
  - at most one probe per broker is under way.
"""

from strandline.base.effects import Failure, Probe
from strandline.base.ids import BrokerEpoch, NodeId
from strandline.base.time import NEVER, Instant, after
from strandline.base.value import Value
from strandline.controller.basis import ControllerConfig
from strandline.controller.tokens import ProbeSent
from strandline.metadata.image import Broker

DEFAULT_LISTENER = "PLAINTEXT"
REFUSALS_PROVE = 2
PROBE_PAUSE_MS_MAX = 500
STALL_MS = 1000  # a timer this late means that heartbeats are waiting unread; and how long to read them


class Probing(Value, frozen=True):
    """A broker under suspicion. `again_at` is set between two probes; `refusals` counts the latest ones in a row."""

    epoch: BrokerEpoch
    attempt: int
    refusals: int = 0
    again_at: Instant = NEVER


class Heartbeats:
    def __init__(self, config: ControllerConfig, listener: str) -> None:
        self.config = config
        self.listener = listener  # inter.broker.listener.name
        self.ends: dict[NodeId, Instant] = {}  # when a session ends without a further heartbeat
        self.connections: dict[int, NodeId] = {}
        self.latest: dict[NodeId, int] = {}  # the connection of the last heartbeat
        self.probing: dict[NodeId, Probing] = {}

    def touch(self, node: NodeId, connection: int | None, now: Instant) -> None:
        """A sign of life of the registered incarnation; `connection` None when a session is opened on trust."""
        assert node >= 0
        self.ends[node] = after(now, self.config.session_timeout_ms)
        assert self.ends[node] > now
        if connection is not None:
            self.probing.pop(node, None)
            self.connections[connection] = node
            self.latest[node] = connection

    def remove(self, node: NodeId) -> None:
        """The broker is gone or replaced: nothing of the old incarnation counts any more."""
        self.ends.pop(node, None)
        self.probing.pop(node, None)
        self.latest.pop(node, None)
        assert not self.is_connected(node)

    def has_session(self, node: NodeId, now: Instant) -> bool:
        return self.ends.get(node, now) > now

    def is_connected(self, node: NodeId) -> bool:
        """Is the connection open by which the broker was last heard of?"""
        return node in self.latest

    def disconnected(self, connection: int) -> NodeId | None:
        """The broker that this connection was the last sign of, if any."""
        node = self.connections.pop(connection, None)
        if node is None or self.latest.get(node) != connection:
            return None
        del self.latest[node]
        return node

    def suspect(self, broker: Broker) -> list[Probe]:
        """Look whether the broker still listens."""
        assert not broker.fenced
        return [] if broker.node_id in self.probing else self.probe(broker)

    def probe(self, broker: Broker) -> list[Probe]:
        before = self.probing.get(broker.node_id, Probing(broker.epoch, 0))
        attempt = before.attempt + 1
        assert before.refusals < REFUSALS_PROVE, "it would be proven dead"
        endpoint = broker.endpoint(self.listener)
        if endpoint is None:
            return []
        self.probing[broker.node_id] = Probing(broker.epoch, attempt, before.refusals)
        token = ProbeSent(broker.node_id, broker.epoch, attempt)
        return [Probe(endpoint, self.config.probe_timeout_ms, token)]

    def probed(self, node: NodeId, epoch: BrokerEpoch, attempt: int, why: Failure | None, now: Instant) -> bool:
        """Take the outcome of a probe; is the broker proven dead?"""
        probing = self.probing.get(node)
        if probing is None or (probing.epoch, probing.attempt) != (epoch, attempt):
            return False  # A heartbeat, or another incarnation, came in between.
        refusals = probing.refusals + 1 if why is Failure.REFUSED else 0
        assert refusals <= REFUSALS_PROVE
        if refusals == REFUSALS_PROVE:
            del self.probing[node]
            return True
        pause = min(self.config.probe_again_ms * attempt, PROBE_PAUSE_MS_MAX)
        self.probing[node] = Probing(epoch, attempt, refusals, after(now, pause))
        return False

    def due(self, now: Instant) -> list[NodeId]:
        """The brokers to probe again."""
        return [node for node, probing in self.probing.items() if probing.again_at <= now]

    def expired(self, now: Instant) -> list[NodeId]:
        """The brokers whose sessions have ended, unless it is we who did not listen."""
        if now - min(self.ends.values(), default=now) > STALL_MS:
            for node, end in self.ends.items():
                self.ends[node] = max(end, after(now, STALL_MS))
        return [node for node, end in self.ends.items() if end <= now]

    def deadline(self) -> Instant:
        first = min(self.ends.values(), default=NEVER)
        return min(first, *[p.again_at for p in self.probing.values()]) if self.probing else first

    def check(self) -> None:
        assert set(self.probing) <= set(self.ends), "only who is in a session is probed"
        assert set(self.latest) <= set(self.ends)
