"""How long do writes stand still when the leader's process is killed, and how long does a start take?

For `strandline bench failover` and `strandline bench start`. What kills a node and what starts a cluster are shell
commands, so that any cluster can be measured.
"""

import os
import signal
import subprocess
import time
from itertools import pairwise

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from strandline.base.value import Value
from strandline.bench.load import pace, producer_of, steady
from strandline.bench.shell import run
from strandline.bench.topic import bench_topic, topic_name
from strandline.client.admin.topics import create_topic, delete_topics, topic_names
from strandline.client.ask import Servers
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import StrandlineError
from strandline.client.librdkafka import addresses, client_config

BEFORE_S = 5.0  # of writes before the kill
RECORD_BYTES = 200
AGAIN_S = 0.05


class Interrupted(Value, frozen=True):
    bootstrap: str
    leader: int  # whose process was killed
    gap_s: float  # the longest time without an acknowledgement
    began_s: float  # how long after the kill it began
    acknowledged: int
    sent: int


class Started(Value, frozen=True):
    bootstrap: str
    seconds: float  # from the command to the first acknowledged record


def failover(cluster: ClientConfig, kill: str, rate: int, seconds: float, replication_factor: int) -> Interrupted:
    """Write to one partition, kill its leader by `kill` with `{id}` replaced, and write on for `seconds`. Raises
    CommandFailed if `kill` fails."""
    config = steady(rate, seconds, RECORD_BYTES, 1, replication_factor)
    acknowledged: list[float] = []

    def heard(error: KafkaError | None, message: Message) -> None:
        del message
        if error is None:
            acknowledged.append(time.perf_counter())

    with bench_topic(cluster, 1, replication_factor) as topic:
        with Cluster(cluster) as known:
            leader = known.leader_of(topic, 0)
        producer = producer_of(cluster, config)
        sent = pace(producer, topic, config, BEFORE_S, lambda due: heard)
        killed = time.perf_counter()
        run(kill.replace("{id}", str(leader)))
        sent += pace(producer, topic, config, seconds, lambda due: heard)
        producer.flush(30)
    gap, began = longest_gap(acknowledged, killed)
    return Interrupted(addresses(cluster), leader, gap, began - killed, len(acknowledged), sent)


def longest_gap(times: list[float], killed: float) -> tuple[float, float]:
    """Of those that end behind the kill: how long it is, and when it began."""
    gaps = [(after - before, before) for before, after in pairwise(times) if after > killed]
    if not gaps:
        raise StrandlineError("nothing was acknowledged after the kill", "give it more --seconds")
    return max(gaps)


def start(servers: Servers, command: str, stop: str, replication_factor: int, limit_s: float) -> Started:
    """Run `command` and create a topic as soon as a node answers. At the end run `stop`, and tell the processes of
    `command` to end."""
    topic = topic_name()
    began = time.perf_counter()
    process = subprocess.Popen(  # the user's
        command, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        while not is_written(servers, topic, replication_factor):
            if process.poll():
                raise StrandlineError(f"the command that starts the cluster failed: exit status {process.returncode}")
            if time.perf_counter() - began > limit_s:
                raise StrandlineError(f"no record was acknowledged in {limit_s:.0f} s", "does the command work?")
            time.sleep(AGAIN_S)
        seconds = time.perf_counter() - began
        delete_topics(servers, [topic])
    finally:
        if stop:
            subprocess.run(stop, shell=True, capture_output=True, check=False)  # the user's
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
    return Started(addresses(servers), seconds)


def is_written(servers: Servers, topic: str, replication_factor: int) -> bool:
    """Is the topic there, and one record of it on all replicas?"""
    try:
        if topic not in topic_names(servers):  # it may be there, with a record that was not acknowledged
            create_topic(servers, topic, 1, replication_factor)
    except (StrandlineError, KafkaException, OSError):
        return False
    errors: list[KafkaError | None] = []
    producer = Producer(client_config(servers, acks="all"))
    producer.produce(topic, bytes(RECORD_BYTES), on_delivery=lambda error, message: errors.append(error))
    producer.flush(30)
    return errors == [None]
