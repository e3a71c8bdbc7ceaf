"""All workloads, by name."""

from strandline.base.ids import TopicPartition
from strandline.sim.clients.committer import CommittedOnce, Committer
from strandline.sim.clients.consumer import Consumer
from strandline.sim.clients.keyed import Keyed, Lasting
from strandline.sim.clients.member import LONG_SESSION_MS, SESSION_MS, Member
from strandline.sim.clients.nearby import Nearby, Roamer
from strandline.sim.clients.odd import Odd
from strandline.sim.clients.producer import Pipelined, Producer
from strandline.sim.workloads.rebalancing import Rebalancing
from strandline.sim.workloads.transacting import Copying, Exchange, Transacting, TwoPhases, Zombies
from strandline.sim.workloads.workload import Workload


class Orders(Workload):
    """Producers of every kind and a consumer for each partition."""

    def setup(self) -> None:
        self.admin.errands.append(self.admin.create("orders", 3, internal_segment_bytes=self.setting.segment_bytes))

    def start(self) -> None:
        stage, pace = self.stage, self.setting.pace_ms
        one, two, three = self.partitions()
        self.writers += [
            Producer(stage, "pa", one, pace_ms=pace),
            Producer(stage, "pb", two, is_idempotent=False, pace_ms=pace),
            Producer(stage, "pc", one, acks=1, pace_ms=pace),
            Pipelined(stage, "pd", three, pace_ms=pace),
            Producer(stage, "pz", two, acks=0, pace_ms=pace),
        ]
        self.readers += [
            Consumer(stage, name, at) for name, at in zip(("ca", "cb", "cc"), (one, two, three), strict=True)
        ]

    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(TopicPartition("orders", index) for index in range(3))


class Commits(Workload):
    """Groups that commit offsets."""

    def setup(self) -> None:
        pass

    def start(self) -> None:
        self.writers += [Committer(self.stage, name, "orders") for name in ("ga", "gb")]


class Brief(Workload):
    """A topic that faults delete and create again, written and read all the time."""

    def setup(self) -> None:
        self.admin.errands.append(self.admin.create("brief", internal_segment_bytes=self.setting.segment_bytes))

    def start(self) -> None:
        at = TopicPartition("brief", 0)
        self.writers.append(Producer(self.stage, "pe", at, pace_ms=self.setting.pace_ms))
        self.readers.append(Consumer(self.stage, "cd", at))


class Loose(Workload):
    """A topic with min ISR 1, whose committed records are deleted now and then.

    Its producer is not idempotent: deleting records deletes what the leader knows of a producer's sequences.
    """

    def setup(self) -> None:
        segment_bytes = self.setting.segment_bytes
        self.admin.errands.append(
            self.admin.create("loose", min_insync_replicas="1", internal_segment_bytes=segment_bytes)
        )

    def start(self) -> None:
        at, pace = TopicPartition("loose", 0), self.setting.pace_ms
        self.writers.append(Producer(self.stage, "pf", at, is_idempotent=False, pace_ms=pace))


class Quiet(Workload):
    """A partition in which hardly anything is written: leader epochs begin and end in it without a record."""

    def setup(self) -> None:
        self.admin.errands.append(self.admin.create("quiet", internal_segment_bytes=self.setting.segment_bytes))

    def start(self) -> None:
        at = TopicPartition("quiet", 0)
        self.writers += [
            Producer(self.stage, "ph", at, pace_ms=1500),
            Producer(self.stage, "pi", at, acks=1, pace_ms=900),
        ]
        self.readers.append(Consumer(self.stage, "cf", at))

    def partitions(self) -> tuple[TopicPartition, ...]:
        return (TopicPartition("quiet", 0),)


class Unclean(Workload):
    """A topic that prefers a leader to its data (unclean.leader.election.enable)."""

    def setup(self) -> None:
        self.admin.errands.append(self.admin.create("hasty", unclean_leader_election_enable="true"))

    def start(self) -> None:
        at = TopicPartition("hasty", 0)
        self.writers.append(Producer(self.stage, "pg", at, pace_ms=self.setting.pace_ms))
        self.readers.append(Consumer(self.stage, "ce", at))


class Reading(Workload):
    """Consumers that read from the closest replica, from any replica, and from the leader."""

    def setup(self) -> None:
        self.admin.errands.append(self.admin.create("reading", internal_segment_bytes=self.setting.segment_bytes))

    def start(self) -> None:
        stage, at = self.stage, TopicPartition("reading", 0)
        self.writers += [
            Producer(stage, "pj", at, pace_ms=self.setting.pace_ms),
            Producer(stage, "pk", at, acks=1, pace_ms=4 * self.setting.pace_ms),
        ]
        self.readers += [Nearby(stage, "na", at), Nearby(stage, "nb", at), Roamer(stage, "ra", at)]

    def partitions(self) -> tuple[TopicPartition, ...]:
        return (TopicPartition("reading", 0),)


class Compacted(Workload):
    """A compacted topic. What is gone from it nobody misses, so that no consumer's history is judged."""

    producer: type[Keyed] = Keyed

    def setup(self) -> None:
        self.admin.errands.append(
            self.admin.create(
                "compacted",
                cleanup_policy="compact",
                min_cleanable_dirty_ratio="0.01",
                internal_segment_bytes=self.setting.segment_bytes,
            )
        )

    def start(self) -> None:
        at, pace = TopicPartition("compacted", 0), self.setting.pace_ms
        self.writers += [
            self.producer(self.stage, "pl", at, pace_ms=pace),
            self.producer(self.stage, "pm", at, acks=1, pace_ms=4 * pace),
        ]


class CompactedLasting(Compacted):
    """The same where some keys come only once. Where all keys come again and again, a log that has lost an old segment
    lacks the last record of none."""

    producer = Lasting


class Members(Workload):
    """A group whose members come and go, two of them static; its partitions are given out anew all the time. And two
    groups that commit once: their offsets may expire, those of the first may not."""

    def setup(self) -> None:
        pass

    def start(self) -> None:
        committed: dict[int, int] = {}
        session_ms = self.stage.random("session").choice((SESSION_MS, LONG_SESSION_MS))
        for name, instance in (("ma", ""), ("mb", ""), ("mc", "one"), ("md", "two")):
            self.writers.append(Member(self.stage, name, "members", "orders", committed, instance, session_ms))
        self.writers += [CommittedOnce(self.stage, name, "orders") for name in ("la", "lb")]


class Strained(Workload):
    """A topic in which leaders pack every batch anew and all replicas flush after few records, with a producer that
    sends what it must not; and one whose old records go as soon as they may, whether followers have them or not. Nobody
    reads them: what is odd is written where its producer is forgotten, and a reader would miss what is gone."""

    def setup(self) -> None:
        rng = self.stage.random("strained")
        codec, messages = rng.choice(("gzip", "lz4", "snappy", "zstd")), rng.choice(("1", "2", "5"))
        segment_bytes = self.setting.segment_bytes
        self.admin.errands.append(
            self.admin.create(
                "strained", compression_type=codec, flush_messages=messages, internal_segment_bytes=segment_bytes
            )
        )
        self.admin.errands.append(
            self.admin.create("worn", retention_bytes="1", retention_ms="300", internal_segment_bytes="1024")
        )

    def start(self) -> None:
        at, pace = TopicPartition("strained", 0), self.setting.pace_ms
        worn = TopicPartition("worn", 0)
        self.writers += [
            Odd(self.stage, "pn", at, pace_ms=pace),
            Pipelined(self.stage, "po", at, pace_ms=4 * pace),
            Producer(self.stage, "pp", worn, is_idempotent=False, pace_ms=pace),
            Producer(self.stage, "pq", worn, acks=1, pace_ms=pace),
        ]


WORKLOADS: dict[str, type[Workload]] = {
    "orders": Orders,
    "commits": Commits,
    "brief": Brief,
    "loose": Loose,
    "quiet": Quiet,
    "unclean": Unclean,
    "reading": Reading,
    "compacted": Compacted,
    "compacted, lasting": CompactedLasting,
    "members": Members,
    "strained": Strained,
    "transactions": Transacting,
    "copying": Copying,
    "zombies": Zombies,
    "two-phase": TwoPhases,
    "exchange": Exchange,
    "rebalancing": Rebalancing,
}
