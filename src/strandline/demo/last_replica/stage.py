"""The stage of the last replica's story: brokers 0, 1 and 2 and a controller, with a network and disks that can fail.

The controller is a process of its own, as in the KIP's text, so that brokers can be cut off without the metadata
quorum. What the metadata says is read from the controller's log: while every broker is cut off or without power, nobody
else could tell.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from strandline.base.ids import METADATA_TOPIC
from strandline.client.admin.loss_ledger import Ledger, ask_ledger
from strandline.client.admin.topics import create_topic
from strandline.client.ask import ask
from strandline.client.brokers import brokers_of
from strandline.client.librdkafka import client_config
from strandline.metadata.features import ELR_FEATURE
from strandline.metadata.framing import decode_record
from strandline.metadata.image import Image
from strandline.metadata.registrations import Partition
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess, StartFailed, free_ports
from strandline.testing.power_loss import durable_files
from strandline.testing.relays import Relays
from strandline.wire.batch import batches
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest
from strandline.wire.messages.cluster.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.record import records
from strandline.wire.schema import Message as WireMessage

TOPIC = "last-replica"
BROKERS = (0, 1, 2)
CONTROLLER = 3
MIN_ISR = 2
WAIT_S = 300.0  # with a machine that has other things to do
REFUSED_AFTER_MS = 1_500  # how long a producer tries where it cannot succeed
PADDING = b"." * 100
PROPERTIES = {
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "min.insync.replicas": str(MIN_ISR),
    "replica.lag.time.max.ms": "1500",
}


class RelayedNode(NodeProcess):
    relayed_port = 0

    @property
    def address(self) -> str:
        """Where all others find it."""
        return f"{HOST}:{self.relayed_port}"


class Stage(LocalCluster):
    def __init__(self, folder: Path, properties: Mapping[str, str] = PROPERTIES, write_back_ms: int = 0) -> None:
        *ports, port = free_ports(2 * len(BROKERS) + 2)
        super().__init__(folder, ports=[0] * 6, properties=properties)
        self.relays = Relays()
        self.brokers = [RelayedNode(n, folder / f"broker-{n}", ports[n], 0) for n in BROKERS]
        self.controller = RelayedNode(CONTROLLER, folder / "controller", port, port)
        self.nodes = [*self.brokers, self.controller]
        for node, relayed_port in zip((*self.brokers, self.controller), ports[len(BROKERS) :], strict=True):
            node.relayed_port = relayed_port
            self.relays.before(node.node_id, node.port, relayed_port)
        for broker in self.brokers:
            broker.can_lose_power(write_back_ms)
        self.cut_off: list[int] = []
        self.sent = 0

    def properties_text(self, node: NodeProcess) -> str:
        """Everybody comes through the relays, but the controller to itself."""
        is_controller = node is self.controller
        voter = f"{HOST}:{node.port}" if is_controller else self.controller.address
        rows = dict(row.split("=", 1) for row in super().properties_text(node).splitlines())
        rows["controller.quorum.voters"] = f"{CONTROLLER}@{voter}"
        if is_controller:
            rows |= {"process.roles": "controller", "listeners": f"CONTROLLER://{HOST}:{node.port}"}
            del rows["advertised.listeners"], rows["inter.broker.listener.name"]
        else:
            rows |= {"process.roles": "broker", "listeners": f"PLAINTEXT://{HOST}:{node.port}"}
            rows["advertised.listeners"] = f"PLAINTEXT://{node.address}"
        return "".join(f"{key}={value}\n" for key, value in rows.items())

    def start(self) -> None:
        self.lay_out()
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.wait_listening()
        for broker in self.brokers:
            broker.wait_sees(len(BROKERS))

    def kill(self) -> None:
        super().kill()
        self.relays.close()

    @property
    def reachable(self) -> str:
        """Where a client on the healthy side of the partition finds the cluster."""
        up = [b for b in self.brokers if b.running and b.node_id not in self.cut_off]
        return ",".join(broker.address for broker in up or self.brokers)

    # --- faults

    def cut(self, broker: int) -> None:
        self.cut_off.append(broker)
        self.relays.cut_off(broker)

    def heal(self) -> None:
        self.cut_off = []
        self.relays.heal()

    def write_back(self) -> None:
        """Every system writes its dirty pages, and all that there is is durable."""
        for broker in self.brokers:
            broker.write_back()
        until("the dirty pages are written", lambda: all(log_end(b) == durable_end(b) for b in self.brokers))

    # --- what is so

    def set_elr(self, level: int) -> None:
        """Switch Eligible Leader Replicas on (1) or off (0), if they are not as wanted."""
        port = self.brokers[0].port
        features = ask(HOST, port, ApiVersionsRequest(), 4).finalized_features
        if next((row.max_version_level for row in features if row.name == ELR_FEATURE), 0) == level:
            return
        wish = FeatureUpdateKey(feature=ELR_FEATURE, max_version_level=level, upgrade_type=1 if level else 2)
        answer = ask(HOST, port, UpdateFeaturesRequest(feature_updates=(wish,)), 2)
        if answer.error_code:
            raise StartFailed(f"{ELR_FEATURE} cannot be set to {level}: {answer.error_message}")

    def records(self) -> Iterator[WireMessage]:
        """The metadata log of the controller."""
        for segment in sorted((self.controller.data_path / f"{METADATA_TOPIC}-0").glob("*.log")):
            content = segment.read_bytes()
            for header in batches(content):
                for record in () if header.is_control else records(header, content):
                    yield decode_record(record.value)

    def image(self) -> Image:
        """The metadata as the controller's log has it."""
        image = Image()
        for record in self.records():
            image.apply(record)
        return image

    def partition(self, image: Image) -> Partition:
        topic = image.topic_named(TOPIC)
        assert topic is not None
        return topic.partitions[0]

    def wait(self, what: str, holds: Callable[[Partition, Image], bool]) -> None:
        def is_so() -> bool:
            image = self.image()
            return holds(self.partition(image), image)

        until(what, is_so)

    def wait_known(self) -> None:
        """Until every broker that can be reached knows what the controller has decided. One that does not may still
        think that it leads, and take records that nobody will ever acknowledge."""
        request = MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),), allow_auto_topic_creation=False)

        def knows(broker: NodeProcess) -> bool:
            (partition,) = ask(HOST, broker.port, request, 12).topics[0].partitions
            return bool(partition.leader_epoch == self.partition(self.image()).leader_epoch)

        up = [broker for broker in self.brokers if broker.running and broker.node_id not in self.cut_off]
        until("the brokers know it", lambda: all(knows(broker) for broker in up))

    def make_topic(self) -> None:
        create_topic(self.reachable, TOPIC, configs={"min.insync.replicas": str(MIN_ISR)}, assignment=[BROKERS])
        self.wait("all three are in sync", lambda p, _: p.isr == BROKERS and p.leader == 0)

    # --- clients

    def write(self, count: int, *, is_refused: bool = False) -> dict[int, int]:
        """A new producer writes so many numbered records with acks=all; which were acknowledged: offset → number."""
        acknowledged: dict[int, int] = {}

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()
                assert offset is not None
                acknowledged[offset] = number_of(message.value())

        settings = {
            "linger.ms": 5,
            "message.timeout.ms": REFUSED_AFTER_MS if is_refused else 20_000,
            "retry.backoff.ms": 100,
            "reconnect.backoff.max.ms": 500,
        }
        producer = Producer(client_config(self.reachable, acks="all", **settings))
        for number in range(self.sent, self.sent + count):
            producer.produce(TOPIC, b"%d %s" % (number, PADDING), partition=0, on_delivery=delivered)
        self.sent += count
        producer.flush(30)
        return acknowledged

    def high_watermark(self) -> int | None:
        """As consumers see it; None: no leader."""
        if self.partition(self.image()).leader < 0:
            return None
        consumer = Consumer(client_config(self.reachable, **{"group.id": TOPIC}))
        try:
            return int(consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=10)[1])
        except KafkaException:
            return None
        finally:
            consumer.close()

    def read(self) -> dict[int, int]:
        """A new consumer reads all that is there: offset → number."""
        consumer = Consumer(client_config(self.reachable, **{"group.id": TOPIC, "enable.auto.commit": False}))
        try:
            where = TopicPartition(TOPIC, 0, 0)
            end = consumer.get_watermark_offsets(where, timeout=10)[1]
            consumer.assign([where])
            found: dict[int, int] = {}
            position, limit = 0, time.monotonic() + WAIT_S
            while position < end:
                if time.monotonic() > limit:
                    raise StartFailed(f"only {position} of {end} offsets could be read")
                for message in consumer.consume(10_000, 0.2):
                    offset = message.offset()
                    if message.error() is None and offset is not None:
                        found[offset] = number_of(message.value())
                        position = offset + 1
            return found
        finally:
            consumer.close()

    def ledger(self) -> Ledger:
        """What the brokers say that was lost, as `strandline losses` asks them."""
        return ask_ledger(brokers_of(self.reachable), [TOPIC])


def until(what: str, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():
        if time.monotonic() > end:
            raise StartFailed(f"not so within {WAIT_S:.0f} s: {what}")
        time.sleep(0.05)


def segments_of(broker: NodeProcess) -> list[Path]:
    return sorted((broker.data_path / f"{TOPIC}-0").glob("*.log"))


def log_end(broker: NodeProcess) -> int:
    """Where the broker's log ends, as its files say."""
    return end_of(segments_of(broker))


def numbers_on(broker: NodeProcess) -> set[int]:
    """Which of the numbered records lie in the broker's files."""
    found = set()
    for content in [path.read_bytes() for path in segments_of(broker)]:
        for header in batches(content):
            for record in () if header.is_control else records(header, content):
                found.add(number_of(record.value))
    return found


def number_of(value: object) -> int:
    assert isinstance(value, bytes)
    return int(value.split(b" ", 1)[0])


def durable_end(broker: NodeProcess) -> int:
    """Where it would end after a loss of power."""
    files = durable_files(broker.durable_path)
    folder = f"{os.path.abspath(broker.data_path)}/{TOPIC}-0/"
    found = [content for path, content in files.items() if path.startswith(folder) and path.endswith(".log")]
    return end_of([content for content in found if content is not None and content.exists()])


def end_of(segments: list[Path]) -> int:
    return max((header.next_offset for path in segments for header in batches(path.read_bytes())), default=0)
