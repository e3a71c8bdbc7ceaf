"""Each value of each request at its extremes, to every listener of a running cluster; and of what nodes say to nodes.

Who sends this knows everything: the cluster's id, the ids and epochs of brokers, topics and leaders. Each message is
wrong in one value only, and so gets as far as a value can get. It may do harm to data that way, and no law is asked
for. But no node may crash, none may fail to start again, and each holds its own invariants. And the cluster goes on,
both before and after all nodes start again: a new topic has all replicas in sync, and takes a record with acks=all.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from strandline.base.effects import Answered, Event, Reply, Send
from strandline.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, NOBODY, ZERO_UUID, NodeId, Uuid
from strandline.base.value import Value
from strandline.metadata.configs.node_configs import STANDARD_AUTHORIZER
from strandline.sim.clients.admin import Admin
from strandline.sim.hostile import (
    PLAIN_NUMBERS,
    PLAIN_TEXTS,
    TOPIC,
    Known,
    Wrong,
    altered,
    batches,
    message,
    served,
    single_faults,
)
from strandline.sim.laws.laws import Laws
from strandline.sim.scene import Scene
from strandline.sim.simulation import World
from strandline.sim.world.connection import Connection, Station
from strandline.sim.world.machine import CLUSTER_ID, METADATA_DIR, Machine
from strandline.sim.world.options import Options
from strandline.wire.api import API_BY_KEY, APIS, Api
from strandline.wire.batch import build
from strandline.wire.messages.groups.join_group import JoinGroupResponse
from strandline.wire.messages.records.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.wire.schema import Message

PATIENCE_MS = 60_000
PAUSE_MS = 20
ALTERED_WITHIN_MS, ANSWERED_WITHIN_MS = 2_000, 200
FIND_COORDINATOR, JOIN_GROUP, CREATE_TOPICS, INIT_PRODUCER_ID = 10, 11, 19, 22
MEMBER_ID_REQUIRED = 79
BY_ID = 13  # the Produce that names topics by id
SETTINGS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "replica.lag.time.max.ms": "2000",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "metadata.log.max.record.bytes.between.snapshots": "3000",
}
QUORUM = ("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchSnapshot", "DescribeQuorum")


class Case(Value, frozen=True):
    """One message: an API, where it goes, and what is wrong with it."""

    api: Api
    listener: str
    wrong: Wrong
    batch: bytes | None = None

    def __str__(self) -> str:
        wrong = ", ".join(f"{'.'.join(at)}={str(found)[:30]}" for at, found in self.wrong.items())
        return f"{self.api.name} to {self.listener}: {wrong or 'a batch'}"


class Alteration(Value, frozen=True):
    """The next message of this class between two nodes arrives with another value."""

    cls: type[Message]
    wrong: Wrong

    def __str__(self) -> str:
        wrong = ", ".join(f"{'.'.join(at)}={str(found)[:30]}" for at, found in self.wrong.items())
        return f"{self.cls.__name__} altered: {wrong}"


def cases() -> Iterator[Case]:
    sound = build([(0, None, b"strange", ())], base_offset=0, leader_epoch=0)
    for listener in ("PLAINTEXT", "CONTROLLER"):
        for api in served(on_controller=listener == "CONTROLLER"):
            for wrong in single_faults(api.request):
                yield Case(api, listener, wrong)
            if api.name == "Produce":
                for batch in batches(sound):
                    yield Case(api, listener, {}, batch)


BETWEEN_NODES = (
    "Fetch", "OffsetForLeaderEpoch", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchSnapshot", "AlterPartition",
    "BrokerRegistration", "BrokerHeartbeat", "AllocateProducerIds", "AssignReplicasToDirs", "GetReplicaLogInfo",
    "CreateTopics",
)  # fmt: skip


def alterations() -> Iterator[Alteration]:
    for name in BETWEEN_NODES:
        api = next(api for api in APIS if api.name == name)
        for cls in (api.request, api.response):
            for wrong in single_faults(cls):
                yield Alteration(cls, wrong)


class Lawless(Laws):
    """Nothing is asked of what the cluster does: only that it runs."""

    def received(self, machine: Machine, event: Any) -> None:
        pass

    def replies(self, machine: Machine, reply: Reply) -> None:
        pass

    def look(self, machine: Machine, node: Any) -> None:
        self.metadata.image = node.image

    def reported(self, machine: Machine, level: str, text: str) -> None:
        pass


class ProbeToken(Value, frozen=True):
    """Counts the requests of the prober."""

    sent: int


class Prober(Station):
    """Sends, and hears no answers but those that come of themselves."""

    def __init__(self, world: World) -> None:
        super().__init__("prober", world.network)
        self.is_node = True  # it knows everything, the secret too
        self.is_running = True
        self.sent = 0
        self.answers: deque[Any] = deque(maxlen=100)

    def event(self, event: Event) -> None:
        if isinstance(event, Answered):
            self.answers.append(event.message)

    def send(self, machine: Machine, listener: str, request: Any, version: int) -> None:
        self.sent += 1
        effect = Send(machine.where[listener], str(self.sent), request, version, 5_000, ProbeToken(self.sent), NOBODY)
        self.network.send(self, effect)


class Probe:
    """A cluster of three that is asked everything."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed, Options(settings=SETTINGS, check_every=1))
        self.world.laws = Lawless(self.world)
        for machine in self.world.machines.values():
            machine.start()
        self.world.run_until("all brokers are in", self.world.why_not_led, PATIENCE_MS)
        scene = Scene(self.world)
        admin = Admin(scene, "admin")
        scene.enter(admin)
        admin.wish(lambda: admin.create(TOPIC, 1))
        self.admin = admin
        self.world.run_until("the topic is there", lambda: self.why_no_topic(TOPIC), PATIENCE_MS)
        self.prober = Prober(self.world)
        self.member, self.generation = "", -1
        self.world.network.tamper = self.tamper
        self.pending: Alteration | None = None
        self.join()

    def why_no_topic(self, topic: str) -> str | None:
        for machine in self.world.machines.values():
            if machine.node is None or topic not in machine.node.image.topic_ids:
                return f"{machine.name} does not know it"
        return self.world.why_not_led()

    def join(self) -> None:
        """Make a group with a member, so that what is asked of groups is asked of one that is there."""
        api = API_BY_KEY[FIND_COORDINATOR]
        self.put(Case(api, "PLAINTEXT", {}))
        self.world.run(3_000)
        self.put(Case(API_BY_KEY[JOIN_GROUP], "PLAINTEXT", {}))
        for _ in range(2):
            self.take_member()
            self.put(Case(API_BY_KEY[JOIN_GROUP], "PLAINTEXT", {}))
            self.world.run(4_000)
        self.take_member()

    def take_member(self) -> None:
        for answer in self.prober.answers:
            is_asked = isinstance(answer, JoinGroupResponse) and answer.error_code in (0, MEMBER_ID_REQUIRED)
            if is_asked and answer.member_id:
                self.member, self.generation = answer.member_id, answer.generation_id

    def tamper(self, connection: Connection, found: Any, version: int) -> Any:
        """Alter the first message of the class that is waited for, if both ends are nodes."""
        waited = self.pending
        if waited is None or type(found) is not waited.cls:
            return found
        ends = (connection.source, connection.target)
        if not all(isinstance(end, Machine) for end in ends):
            return found
        self.pending = None
        return altered(found, waited.wrong)

    def provoke(self, api: str) -> None:
        """Make the nodes send requests of this API."""
        active = self.world.controller() or self.world.machines[NodeId(1)]
        other = self.world.machines[NodeId(active.node_id % 3 + 1)]
        match api:
            case "Vote" | "BeginQuorumEpoch":
                active.kill()
                self.world.run(1_500)
                active.start()
            case "EndQuorumEpoch":
                active.shut_down()
                self.world.run(1_500)
                active.start()
            case "BrokerRegistration" | "AlterPartition":
                other.kill()
                other.start()
            case "FetchSnapshot":
                other.kill()
                other.replace_disk(METADATA_DIR)
                other.start()
            case "CreateTopics" | "AssignReplicasToDirs":
                self.put(Case(API_BY_KEY[CREATE_TOPICS], "PLAINTEXT", {}))
            case "AllocateProducerIds":
                other.kill()
                other.start()
                self.world.run(1_500)
                self.put(Case(API_BY_KEY[INIT_PRODUCER_ID], "PLAINTEXT", {}))
            case _:
                pass

    def alter(self, alteration: Alteration, within_ms: int) -> bool:
        """Wait until a message of the class has come altered. Some come seldom: then nothing was altered."""
        self.pending = alteration
        self.provoke(alteration.cls.__name__.removesuffix("Request").removesuffix("Response"))
        for _ in range(within_ms // PAUSE_MS):
            if self.is_altered():
                break
            self.world.run(PAUSE_MS)
        is_done, self.pending = self.is_altered(), None
        return is_done

    def is_altered(self) -> bool:
        return self.pending is None

    def known(self, machine: Machine, case: Case) -> Known:
        """All that is true, so that one number alone is wrong."""
        node = machine.node
        assert node is not None
        image, quorum = node.image, node.quorum
        about_quorum = case.api.name in QUORUM or (case.listener == "CONTROLLER" and case.api.name == "Fetch")
        topic_id = image.topic_ids.get(TOPIC, ZERO_UUID)
        topic = image.topics.get(topic_id)
        partition = topic.partitions.get(0) if topic is not None else None
        other = NodeId(machine.node_id % 3 + 1)
        broker = image.brokers.get(other)
        epoch = quorum.leader_epoch if about_quorum else partition.leader_epoch if partition is not None else 0
        return Known(
            numbers={
                **dict.fromkeys(("broker_id", "replica_id", "leader_id", "candidate_id", "node_id"), int(other)),
                **dict.fromkeys(("broker_epoch", "previous_broker_epoch"), int(broker.epoch) if broker else 0),
                **dict.fromkeys(("current_leader_epoch", "leader_epoch", "replica_epoch"), epoch),
                "last_fetched_epoch": quorum.state.log.last_epoch if about_quorum else epoch,
                "fetch_offset": quorum.state.log.log_end_offset if about_quorum else 0,
                "current_metadata_offset": node.committed.end,
                "partition_epoch": partition.partition_epoch if partition is not None else 0,
                **PLAIN_NUMBERS,
                "generation_id": self.generation,
                "generation_id_or_member_epoch": self.generation,
                "session_timeout_ms": 300_000,
                "timeout_ms": 1000,
                "max_wait_ms": 10,
                "replication_factor": 3,
                "new_isr": int(other),
            },
            texts={
                "cluster_id": CLUSTER_ID,
                **dict.fromkeys(("topic", "name", "topic_name"), METADATA_TOPIC if about_quorum else TOPIC),
                **PLAIN_TEXTS,
                "member_id": self.member,
                "topics.name": f"new-{self.prober.sent}" if case.api.name == "CreateTopics" else TOPIC,
                "feature_updates.feature": "metadata.version",
                "protocol_type": "consumer",
                "host": "n1",
            },
            empty=(("topics", "assignments"), ("topics", "configs")) if case.api.name == "CreateTopics" else (),
            ids={"topic_id": bytes(METADATA_TOPIC_ID) if about_quorum else bytes(topic_id)},
            records=case.batch or build([(self.world.time.now, None, b"strange", ())], base_offset=0, leader_epoch=-1),
        )

    def put(self, case: Case) -> None:
        version = case.api.request.versions[-1]
        for machine in self.world.machines.values():
            if machine.node is not None and machine.is_running:
                request = message(case.api, version, self.known(machine, case), case.wrong)
                self.prober.send(machine, case.listener, request, version)
        self.world.run(PAUSE_MS)

    def go_on(self, topic: str) -> None:
        """A new topic has all replicas in sync, and takes a record."""
        self.admin.wish(lambda: self.admin.create(topic, 1))
        self.world.run_until(f"{topic} is there", lambda: self.why_no_topic(topic), PATIENCE_MS)
        self.world.run_until(f"{topic} has taken a record", lambda: self.why_not_taken(topic), PATIENCE_MS)

    def why_not_taken(self, topic: str) -> str | None:
        image = next(machine.node.image for machine in self.world.machines.values() if machine.node is not None)
        at = image.topic_ids[topic]
        partition = image.topics[at].partitions[0]
        if len(partition.isr) < len(self.world.machines):
            return f"the ISR is {partition.isr}"
        if any(isinstance(answer, ProduceResponse) and is_taken(answer, at) for answer in self.prober.answers):
            return None
        records = bytearray(build([(self.world.time.now, None, b"on", ())], base_offset=0, leader_epoch=-1))
        rows = (PartitionProduceData(index=0, records=records),)
        data = (TopicProduceData(topic_id=at, partition_data=rows),)
        request = ProduceRequest(acks=-1, timeout_ms=1500, topic_data=data)
        self.prober.send(self.world.machines[partition.leader], "PLAINTEXT", request, BY_ID)
        self.world.run(PAUSE_MS)
        return "no answer says that it is there"

    def restart(self) -> None:
        """Everything that was believed was perhaps written down: it is read again."""
        for machine in self.world.machines.values():
            machine.kill()
        for machine in self.world.machines.values():
            machine.start()
            assert machine.is_running, f"{machine.name} cannot start again"
        self.world.run(2_000)
        for machine in self.world.machines.values():
            assert machine.is_running, f"{machine.name} has ended"


def is_taken(answer: ProduceResponse, topic_id: Uuid) -> bool:
    return any(
        row.error_code == 0
        for topic in answer.responses
        if topic.topic_id == topic_id
        for row in topic.partition_responses
    )


def probe(chosen: Iterable[Case | Alteration], seed: int = 1) -> None:
    """Raises AssertionError with the case in it."""
    one = Probe(seed)
    for case in chosen:
        try:
            if isinstance(case, Case):
                one.put(case)
            else:
                one.alter(case, ALTERED_WITHIN_MS)
                one.world.run(ANSWERED_WITHIN_MS)
        except Exception as error:
            raise AssertionError(f"{case}: {error}") from error
    one.world.run(10_000)
    one.go_on("before")
    one.restart()
    one.go_on("after")


__all__ = ["Alteration", "Case", "Probe", "alterations", "cases", "probe"]
