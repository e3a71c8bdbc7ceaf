"""The leader is killed under load; what was acknowledged is read back, and the replicas' logs are compared."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from strandline.base.value import Value
from strandline.client.admin.topics import create_topic
from strandline.client.ask import ask
from strandline.client.librdkafka import client_config
from strandline.demo.demonstration import keep_rate, safe_producer
from strandline.demo.evidence import LogDigest, Place, Verdict, are_logs_equal, digest_log, interruption, judge
from strandline.testing.local_cluster import LocalCluster, StartFailed
from strandline.wire.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest

TOPIC = "demo"
NODES = 3
KILL_AFTER_S = 3.0
RESTART_AFTER_S = 7.0
PADDING = b"." * 200
STEPS = 7
QUIET_S = 120.0  # so long nothing may change where something must


class PartitionState(Value, frozen=True):
    leader: int
    leader_epoch: int
    in_sync: int


class LeaderKillResult(Value, frozen=True):
    verdict: Verdict
    unacknowledged: int
    interruption_s: float
    killed: int
    before: dict[int, PartitionState]
    after: dict[int, PartitionState]
    healed_s: float  # from the restart until every replica was in sync
    ends: dict[int, int]  # high watermarks, by partition
    logs: dict[int, dict[int, LogDigest]]  # by partition, by node

    @property
    def logs_equal(self) -> bool:
        return bool(self.logs) and all(are_logs_equal(self.logs[p].values(), end) for p, end in self.ends.items())

    @property
    def bytes_compared(self) -> int:
        """The log of one replica of each partition."""
        return sum(next(iter(by_node.values())).size for by_node in self.logs.values())

    @property
    def holds(self) -> bool:
        """A run in which nothing was acknowledged proves nothing."""
        return self.verdict.acknowledged > 0 and self.verdict.holds and self.logs_equal


class Writer:
    """Writes numbered records, round robin over the partitions, and remembers what was acknowledged, where and when."""

    def __init__(self, bootstrap: str, partitions: int, rate: int) -> None:
        self.partitions = partitions
        self.rate = rate
        self.sent = 0
        self.acknowledged: dict[Place, int] = {}
        self.times: dict[int, list[float]] = {p: [] for p in range(partitions)}
        self.failed = 0
        self.producer = safe_producer(bootstrap)

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed += 1
            return
        value = message.value()
        assert isinstance(value, bytes)
        number = int(value.split(b" ", 1)[0])
        partition = message.partition() or 0
        self.acknowledged[(partition, message.offset() or 0)] = number
        self.times[partition].append(time.monotonic())

    def write_for(self, span_s: float) -> None:
        """Keep the rate for a while, whatever happens to the cluster."""
        keep_rate(self.producer, self.rate, time.monotonic() + span_s, self.send)

    def send(self) -> None:
        value = b"%d %s" % (self.sent, PADDING)
        self.producer.produce(TOPIC, value, partition=self.sent % self.partitions, on_delivery=self.delivered)
        self.sent += 1

    def finish(self) -> int:
        """Wait for what is under way; how many records are not acknowledged."""
        while self.producer.flush(1.0):
            pass  # each record is acknowledged, or given up by the producer
        return self.sent - len(self.acknowledged)


def run(
    cluster: LocalCluster, say: Callable[[str], None], *, seconds: float, rate: int, partitions: int
) -> LeaderKillResult:
    """Needs a cluster that is up. `say` gets a text at each of the `STEPS`."""
    make_topic(cluster, partitions)
    before = partition_states(cluster)
    victim = before[0].leader
    writer = Writer(cluster.bootstrap, partitions, rate)
    say(f"writing {rate} records/s with acks=all; node {victim} leads partition 0")
    writer.write_for(KILL_AFTER_S)
    killed_at = time.monotonic()
    cluster.node(victim).kill()
    say(f"node {victim} is killed (SIGKILL); writing goes on")
    writer.write_for(RESTART_AFTER_S - KILL_AFTER_S)
    cluster.node(victim).start()
    restarted_at = time.monotonic()
    say(f"node {victim} is started again; writing goes on")
    with ThreadPoolExecutor(1) as watcher:
        healing = watcher.submit(wait_whole, cluster, victim)
        writer.write_for(seconds - RESTART_AFTER_S)
        unacknowledged = writer.finish()
        finished_at = time.monotonic()
        say("waiting until all replicas are in sync again")
        healed_s = healing.result()
    wait_whole(cluster)
    say(f"reading back {len(writer.acknowledged)} acknowledged records")
    read, ends = read_back(cluster.bootstrap, partitions)
    verdict = judge(writer.acknowledged, read)
    say("comparing the three logs byte for byte")
    logs = {p: logs_of(cluster, p, end) for p, end in ends.items()}
    say("done")
    interruption_s = max(
        interruption(writer.times[p], start=killed_at, until=restarted_at, end=finished_at)
        for p, state in before.items()
        if state.leader == victim
    )
    after = partition_states(cluster)
    return LeaderKillResult(verdict, unacknowledged, interruption_s, victim, before, after, healed_s, ends, logs)


def logs_of(cluster: LocalCluster, partition: int, end: int) -> dict[int, LogDigest]:
    """By node."""
    return {node.node_id: digest_log(node.data_path / f"{TOPIC}-{partition}", end) for node in cluster.nodes}


def make_topic(cluster: LocalCluster, partitions: int) -> None:
    create_topic(cluster.bootstrap, TOPIC, partitions, NODES, {"min.insync.replicas": "2"})
    wait_whole(cluster)


def partition_states(cluster: LocalCluster, besides: int = 0, topic: str = TOPIC) -> dict[int, PartitionState]:
    """As a running node's metadata has it; not node `besides`, which may still be reading old metadata."""
    request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name=topic),))
    node = next(node for node in cluster.nodes if node.running and node.node_id != besides)
    answer = ask("127.0.0.1", node.port, request, 0)
    return {
        p.partition_index: PartitionState(p.leader_id, p.leader_epoch, len(p.isr_nodes))
        for p in answer.topics[0].partitions
    }


def wait_whole(cluster: LocalCluster, besides: int = 0) -> float:
    """Until every replica is in sync; how many seconds it took. A busy machine is slow, and gets its time: nothing is
    given up as long as something changes."""
    started = changed = time.monotonic()
    before: dict[int, PartitionState] = {}
    while True:
        states = before
        with suppress(OSError):  # a node that does not answer in time is asked again
            states = partition_states(cluster, besides)
        if states and all(s.in_sync == NODES and s.leader >= 0 for s in states.values()):
            return time.monotonic() - started
        if states != before:
            before, changed = states, time.monotonic()
        if time.monotonic() - changed > QUIET_S:
            raise StartFailed(f"the replicas are not in sync, and for {QUIET_S:.0f} s nothing has changed: {states}")
        time.sleep(0.05)


def read_back(bootstrap: str, partitions: int) -> tuple[list[tuple[Place, int]], dict[int, int]]:
    """Every record below the high watermarks, in order; and the high watermarks."""
    consumer = Consumer(client_config(bootstrap, **{"group.id": "demo", "enable.auto.commit": False}))
    ends = {p: consumer.get_watermark_offsets(TopicPartition(TOPIC, p), timeout=10)[1] for p in range(partitions)}
    consumer.assign([TopicPartition(TOPIC, p, 0) for p in range(partitions)])
    read: list[tuple[Place, int]] = []
    next_offsets = dict.fromkeys(ends, 0)
    silent_since = time.monotonic()
    while any(next_offsets[p] < ends[p] for p in ends) and time.monotonic() - silent_since < QUIET_S:
        for message in consumer.consume(10_000, 0.2):
            if message.error() is None:
                value = message.value()
                assert isinstance(value, bytes)
                place = (message.partition() or 0, message.offset() or 0)
                read.append((place, int(value.split(b" ", 1)[0])))
                next_offsets[place[0]] = place[1] + 1
                silent_since = time.monotonic()
    consumer.close()
    return read, ends
